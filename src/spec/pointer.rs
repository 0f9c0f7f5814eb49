//! JSON Pointers (RFC 6901) as OpenAPI writes them: `#/paths/~1pets/get`.

use std::borrow::Cow;
use std::fmt::Write as _;

use percent_encoding::percent_decode_str;

use super::node::Node;
pub(crate) use crate::json::unescaped_token;

/// Appends one reference token to `pointer`, with `~` and `/` escaped (RFC 6901 section 3).
pub(crate) fn push(pointer: &mut String, token: &str) {
    pointer.push('/');
    for character in token.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// A pointer fragment (`#/a/b`) made of the given tokens.
pub(crate) fn fragment<'t>(tokens: impl IntoIterator<Item = &'t str>) -> String {
    let mut pointer = String::from("#");
    for token in tokens {
        push(&mut pointer, token);
    }
    pointer
}

/// Appends an array index.
pub(crate) fn push_index(pointer: &mut String, index: usize) {
    // Writing to a String cannot fail.
    let _ = write!(pointer, "/{index}");
}

/// Returns the tokens of a URI fragment that holds a JSON Pointer (RFC 6901 section 6):
/// percent-decoded first, then unescaped. The text comes without its `#`. Returns `None` if it is
/// not a pointer (a plain anchor, for instance).
pub(crate) fn tokens(fragment: &str) -> Option<Vec<String>> {
    if fragment.is_empty() {
        return Some(Vec::new());
    }
    let decoded: Cow<'_, str> = percent_decode_str(fragment).decode_utf8().ok()?;
    let rest = decoded.strip_prefix('/')?;
    Some(rest.split('/').map(unescaped_token).collect())
}

/// The value that the tokens lead to from `node`.
pub(crate) fn target<'a>(mut node: Node<'a>, tokens: &[String]) -> Option<Node<'a>> {
    for token in tokens {
        node = match node.items() {
            Some(mut items) => items.nth(token.parse().ok()?)?,
            None => node.member(token)?,
        };
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_percent_decoded_before_they_are_unescaped() {
        for (text, expected) in [
            (
                "/components/schemas/Pet",
                vec!["components", "schemas", "Pet"],
            ),
            (
                "/paths/~1pets~1%7Bid%7D/get",
                vec!["paths", "/pets/{id}", "get"],
            ),
            ("/a/~01", vec!["a", "~1"]),
            ("", vec![]),
        ] {
            assert_eq!(
                tokens(text),
                Some(expected.into_iter().map(String::from).collect()),
                "{text}"
            );
        }
        assert_eq!(tokens("anchor"), None);
    }

    #[test]
    fn a_fragment_reads_back_as_its_tokens() {
        let written = fragment(["paths", "/a~b/{c}", "get"]);
        assert_eq!(written, "#/paths/~1a~0b~1{c}/get");
        assert_eq!(
            tokens(written.trim_start_matches('#')).unwrap(),
            ["paths", "/a~b/{c}", "get"]
        );
    }
}
