//! Replies that become files.

mod saved;
