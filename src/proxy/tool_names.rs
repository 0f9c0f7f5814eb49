//! The names under which a caller knows the tools of an API: an endpoint shows all of them or some, with the prefix of the API or
//! without.

/// The tools of one API as a caller is shown them.
pub(crate) trait ToolNames: Sync {
    /// The name under which the caller is shown the tool of this name in its API; `None` where it is not shown that tool.
    fn shown_name<'n>(&'n self, name: &'n str) -> Option<&'n str>;
}

/// All tools under the names that they have in their API.
pub(crate) struct OwnNames;

impl ToolNames for OwnNames {
    fn shown_name<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        Some(name)
    }
}
