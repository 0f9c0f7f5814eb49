//! What shows a person how the program is used: a demonstration, completions for shells, the manual page.

pub(crate) mod demo;
pub(crate) mod shell;
