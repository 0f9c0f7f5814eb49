//! MCP on both transports: the protocol eras, confirmations, and how a server ends.

mod confirmation;
mod gate_adversary;
mod library;
mod life_cycle;
mod notes;
mod protocol;
mod search_gates;
mod search_mode;
mod search_on_use;
mod two_binaries;
