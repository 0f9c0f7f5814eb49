//! Query parameters that ask for a page of a list.

use std::sync::Arc;

use super::operation::response::header_names;
use super::{Document, Location, Operation, Parameter};
use crate::text::is_word_of;

/// Parameters that say which page comes, in names without case and punctuation.
const PLACES: &str =
    "afterid bookmark continuation continuationtoken continue cursor exclusivestartkey marker
    nextcursor nextmarker nextpage nextpagetoken nexttoken offset page pageafter pagecursor
    pageindex pageno pagenum pagenumber pageoffset pagetoken skip skiptoken startat
    startcursor startindex startingafter";
/// Parameters that say which page comes, or something else.
const POSSIBLE_PLACES: &str = "after from index next position since sinceid start token";
/// Parameters that say how much comes at once, in names without case and punctuation.
const SIZES: &str = "limit perpage pagesize maxresults maxitems count size top first max rows take";

/// The parameter that says how much comes at once.
pub(crate) fn page_size_parameter(operation: &Operation) -> Option<&Parameter> {
    SIZES
        .split_whitespace()
        .find_map(|name| query_parameter(operation, name))
}

/// The argument that says how much comes at once.
pub(crate) fn page_size_argument(operation: &Operation) -> Option<&str> {
    page_size_parameter(operation).map(|parameter| parameter.key.as_str())
}

/// Returns true if a parameter of that name says which page comes, or how long it is.
pub(crate) fn is_of_paging(name: &str) -> bool {
    let name = normalized_name(name);
    [PLACES, POSSIBLE_PLACES, SIZES]
        .into_iter()
        .any(|names| is_word_of(names, &name))
}

/// Returns true if a reply may have a next page that arguments get: a parameter says which page
/// comes, or one that may say so has another beside it that says how long the page is, or replies
/// have a `Link` header.
pub(crate) fn may_have_next_page(document: &Document, operation: &Operation) -> bool {
    let in_query = query_parameters(operation).map(|parameter| normalized_name(&parameter.name));
    let in_query: Vec<String> = in_query.collect();
    let has = |names| in_query.iter().any(|name| is_word_of(names, name));
    has(PLACES)
        || (has(POSSIBLE_PLACES) && has(SIZES))
        || (!in_query.is_empty()
            && header_names(document, operation)
                .iter()
                .any(|name| name.eq_ignore_ascii_case("link")))
}

fn query_parameters(operation: &Operation) -> impl Iterator<Item = &Parameter> {
    let parameters = operation.parameters.iter().map(Arc::as_ref);
    parameters.filter(|parameter| parameter.location == Location::Query)
}

/// Returns the query parameter of that name without case and punctuation.
pub(crate) fn query_parameter<'o>(operation: &'o Operation, name: &str) -> Option<&'o Parameter> {
    query_parameters(operation).find(|parameter| normalized_name(&parameter.name) == name)
}

/// A name without case and punctuation.
pub(crate) fn normalized_name(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|character| character.to_ascii_lowercase())
        .collect()
}
