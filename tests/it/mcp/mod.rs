//! MCP on both transports: the protocol eras, confirmations, and how a server ends.

mod confirmation;
mod identity;
mod library;
mod life_cycle;
mod meta_tool_adversary;
mod notes;
mod protocol;
mod search_meta_tools;
mod search_mode;
mod search_on_use;
mod two_binaries;
