//! The names of the meta-tools. They are reserved in every mode, so that a change of mode renames
//! nothing.

use super::annotations::Effect;

/// A meta-tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaToolKind {
    /// Finds operations.
    Search,
    /// Describes the arguments of operations.
    Describe,
    /// Calls an operation that reads.
    CallRead,
    /// Calls an operation that adds.
    CallWrite,
    /// Calls an operation that may change or remove what exists.
    CallDestructive,
    /// Goes on waiting for an operation.
    Wait,
}

impl MetaToolKind {
    /// All of them, in the order in which they are listed.
    pub(crate) const ALL: [Self; 6] = [
        Self::Search,
        Self::Describe,
        Self::CallRead,
        Self::CallWrite,
        Self::CallDestructive,
        Self::Wait,
    ];

    /// The name, without the prefix of the operator.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Search => "search_operations",
            Self::Describe => "describe_operations",
            Self::CallRead => "call_read",
            Self::CallWrite => "call_write",
            Self::CallDestructive => "call_destructive",
            Self::Wait => "wait_operation",
        }
    }

    /// Returns the meta-tool that calls operations of a class.
    pub(crate) fn of_effect(effect: Effect) -> Self {
        match effect {
            Effect::Read => Self::CallRead,
            Effect::Write => Self::CallWrite,
            Effect::Destructive => Self::CallDestructive,
        }
    }
}

/// Returns the meta-tool of a name without prefix.
pub(crate) fn kind_of(name: &str) -> Option<MetaToolKind> {
    MetaToolKind::ALL
        .into_iter()
        .find(|kind| kind.name() == name)
}
