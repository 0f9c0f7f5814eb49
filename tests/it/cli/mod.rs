//! The command line: commands, settings and their errors.

mod bad_input;
#[cfg(unix)]
pub mod book;
mod called;
mod check;
mod commands;
mod config_file;
mod deploy;
mod help;
mod links;
#[cfg(unix)]
mod login;
mod mistakes;
mod mock;
pub mod packages;
mod readme;
mod scores;
#[cfg(unix)]
mod shell;
#[cfg(unix)]
mod standard_error;
#[cfg(unix)]
mod standard_output;
#[cfg(target_os = "linux")]
pub(crate) mod terminal;
mod unmatched_rules;
