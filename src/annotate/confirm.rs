//! `--confirm`: which calls a person is asked about before they are made.

use super::enforcement::Enforcement;

/// Which calls a person is asked about before they are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confirm {
    /// None.
    #[default]
    None,
    /// Those of tools that may change or remove what exists.
    Destructive,
    /// Those of all tools that are not read-only.
    Write,
}

impl Confirm {
    /// Whether a person is asked before calls of a tool.
    #[must_use]
    pub(crate) fn asks(self, enforcement: &Enforcement) -> bool {
        match self {
            Self::None => false,
            Self::Destructive => enforcement.is_destructive(),
            Self::Write => !enforcement.is_read_only(),
        }
    }
}
