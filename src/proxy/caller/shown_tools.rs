//! The tools of an API that a caller may list at an endpoint.

use std::sync::Arc;

use super::client_grant::Permission;

/// The tools of an API that a caller may list at an endpoint; all of them by default.
#[derive(Debug, Clone, Default)]
pub(crate) struct ShownTools {
    /// The permission for each tool, by its place; `None` if all are granted.
    pub(crate) permissions: Option<Arc<[Permission]>>,
    /// True if the endpoint serves only tools that count as read-only.
    pub(crate) reads_only: bool,
}

impl ShownTools {
    /// Returns true if the tool at that place is one of them.
    pub(crate) fn has(&self, place: usize, is_read_only: bool) -> bool {
        let is_granted =
            |permissions: &Arc<[Permission]>| permissions.get(place) == Some(&Permission::Granted);
        (!self.reads_only || is_read_only) && self.permissions.as_ref().is_none_or(is_granted)
    }
}
