//! The clients at the other end: what is known of them between their messages, and what is sent to
//! them beside answers.

pub(crate) mod connection;
pub(crate) mod request_origin;
pub(crate) mod subscription;
