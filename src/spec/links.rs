//! `Link` headers (RFC 8288).

use http::HeaderValue;

/// Returns the targets of the links that have a relation, as they are written.
pub(crate) fn link_targets<'h>(
    headers: impl Iterator<Item = &'h HeaderValue>,
    relation: &str,
) -> impl Iterator<Item = &'h str> {
    let values = headers.filter_map(|value| value.to_str().ok());
    let links = values.flat_map(|value| value.split('<').skip(1));
    links.filter_map(move |link| {
        let (target, parameters) = link.split_once('>')?;
        let mut parameters = parameters.split([';', ',']);
        let is_meant = parameters.any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or_default();
            name.trim().eq_ignore_ascii_case("rel")
                && has_relation(value.trim().trim_matches('"'), relation)
        });
        is_meant.then_some(target)
    })
}

/// Returns true if a list of relations has that one; relations are case-insensitive (section 3.3).
pub(crate) fn has_relation(relations: &str, relation: &str) -> bool {
    let mut relations = relations.split_whitespace();
    relations.any(|known| known.eq_ignore_ascii_case(relation))
}
