//! One reader and one writer for the messages of all versions of MCP, and what the versions differ in.

pub(crate) mod answer;
pub(crate) mod message;
pub(crate) mod unreadable;
pub(crate) mod version;
