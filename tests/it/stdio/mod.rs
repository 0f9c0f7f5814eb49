//! stdio: the one client at the other end of the pipe.

mod hostile_client;
#[cfg(target_os = "linux")]
mod no_port;
