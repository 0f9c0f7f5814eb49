//! Query parameters that ask for a page of a list.

use std::sync::Arc;

use super::{Location, Operation, Parameter};

/// Parameters that say how much comes at once, in names without case and punctuation.
const SIZES: [&str; 12] = [
    "limit",
    "perpage",
    "pagesize",
    "maxresults",
    "maxitems",
    "count",
    "size",
    "top",
    "first",
    "max",
    "rows",
    "take",
];

/// The argument that says how much comes at once.
#[must_use]
pub(crate) fn page_size_argument(operation: &Operation) -> Option<&str> {
    SIZES
        .iter()
        .find_map(|name| query_parameter(operation, name))
        .map(|parameter| parameter.key.as_str())
}

/// Returns the query parameter of that name without case and punctuation.
pub(crate) fn query_parameter<'o>(operation: &'o Operation, name: &str) -> Option<&'o Parameter> {
    let mut parameters = operation.parameters.iter().map(Arc::as_ref);
    parameters.find(|parameter| parameter.location == Location::Query && normalized_name(&parameter.name) == name)
}

/// A name without case and punctuation.
pub(crate) fn normalized_name(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect()
}
