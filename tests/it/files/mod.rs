//! Replies that become files.

mod saved;
mod served;
