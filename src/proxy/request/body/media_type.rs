//! Media types that a caller gives for a file (RFC 9110 section 8.3.1).

use crate::spec::media_type::essence;
use crate::spec::operation::security_scheme::is_token;

/// Returns true if the text is one media type: `type/subtype`, with or without parameters, and not
/// a range.
pub(crate) fn is_media_type(text: &str) -> bool {
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_name = name
        .trim_matches([' ', '\t'])
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    is_name && !name.contains('*') && are_parameters(parameters)
}

/// Returns true if the type is within one of the declared types and ranges; true for all types if
/// bytes of any kind, or none, are declared.
pub(crate) fn is_declared<'r>(
    media_type: &str,
    declared: impl IntoIterator<Item = &'r str>,
) -> bool {
    let given = essence(media_type);
    let mut declared = declared.into_iter().peekable();
    declared.peek().is_none()
        || declared.any(|range| match &*essence(range) {
            "*/*" | "*" | "application/octet-stream" => true,
            range => match range.strip_suffix('*') {
                Some(kind) => given.starts_with(kind),
                None => given == range,
            },
        })
}

fn are_parameters(mut rest: &str) -> bool {
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() {
            return true;
        }
        let Some((name, value)) = rest.split_once('=') else {
            return false;
        };
        let end = match value.strip_prefix('"') {
            Some(quoted) => quoted_end(quoted).map(|end| end + 1),
            None => Some(value.find([';', ' ', '\t']).unwrap_or(value.len()))
                .filter(|end| value.get(..*end).is_some_and(is_token)),
        };
        let Some(after) = end
            .and_then(|end| value.get(end..))
            .filter(|_| is_token(name))
        else {
            return false;
        };
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(';') {
            return false;
        }
    }
}

/// Returns the index after the last quote of a quoted string.
fn quoted_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (index, character) in text.char_indices() {
        match character {
            _ if character.is_control() && character != '\t' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_told_from_what_is_none() {
        for good in [
            "image/png",
            "Text/Plain; charset=utf-8",
            "text/plain;charset=\"a\\\"; b\" ; x=y;",
            "application/vnd.a+json",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in [
            "",
            "png",
            "image/",
            "/png",
            "image/*",
            "image/png\r\nX: y",
            "image/png; a",
            "image/png; a=\"\r\n\"",
            "image/png; a=\"b",
            "image/png; a=b c",
            "image /png",
            "image/png, text/html",
            "image/p\u{0}ng",
        ] {
            assert!(!is_media_type(bad), "{bad:?}");
        }
    }

    #[test]
    fn types_fall_in_declared_ranges() {
        for (given, declared, expected) in [
            ("IMAGE/png; a=b", &["image/*"][..], true),
            ("text/html", &["image/*"], false),
            ("text/html", &["image/png", "text/html;level=1"], true),
            ("text/html", &["*/*"], true),
            ("text/html", &[], true),
            ("text/html", &["application/octet-stream"], true),
        ] {
            assert_eq!(
                is_declared(given, declared.iter().copied()),
                expected,
                "{given} {declared:?}"
            );
        }
    }
}
