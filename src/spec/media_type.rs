//! Media types (RFC 9110 section 8.3.1): their parts, and the kind of content they denote.

use std::borrow::Cow;

use http::header::{CONTENT_TYPE, HeaderMap};

/// Kind of content that a media type denotes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum MediaKind {
    /// `application/json`, `*+json`, and `*/*`.
    #[default]
    Json,
    /// `application/jsonl`, `application/x-ndjson`: one JSON text a line.
    Lines,
    /// `application/json-seq`, `*+json-seq`: RFC 7464.
    Sequence,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// `multipart/form-data` and other `multipart/*`.
    Multipart,
    /// `text/*`, and YAML.
    Text,
    /// `application/xml`, `*+xml`.
    Xml,
    /// All other types: bytes.
    Binary,
}

/// The value of `Content-Type`; empty if there is none, or if it is not text.
pub(crate) fn content_type(headers: &HeaderMap) -> &str {
    headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// A media type without its parameters, in lower case.
pub(crate) fn essence(media_type: &str) -> Cow<'_, str> {
    // What almost every reply has.
    if let "application/json"
    | "application/json; charset=utf-8"
    | "application/json;charset=utf-8" = media_type
    {
        return Cow::Borrowed("application/json");
    }
    // Almost every other type is written so already, without parameters.
    if media_type
        .bytes()
        .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'/' | b'+' | b'-' | b'.'))
    {
        return Cow::Borrowed(media_type);
    }
    Cow::Owned(
        pieces(media_type)
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase(),
    )
}

/// The value of the first parameter with that name, out of its quotes; parameter names have no
/// case.
pub(crate) fn parameter<'m>(media_type: &'m str, name: &str) -> Option<Cow<'m, str>> {
    if !media_type.contains(';') {
        return None;
    }
    let mut parameters = pieces(media_type)
        .skip(1)
        .filter_map(|piece| piece.split_once('='));
    let (_, value) = parameters.find(|(other, _)| other.trim().eq_ignore_ascii_case(name))?;
    let value = value.trim();
    let Some(quoted) = value.strip_prefix('"') else {
        return Some(Cow::Borrowed(value));
    };
    let quoted = quoted.strip_suffix('"').unwrap_or(quoted);
    if !quoted.contains('\\') {
        return Some(Cow::Borrowed(quoted));
    }
    let mut is_escaped = false;
    let unescaped = quoted.chars().filter(|character| {
        is_escaped = *character == '\\' && !is_escaped;
        !is_escaped
    });
    Some(Cow::Owned(unescaped.collect()))
}

/// The type and its parameters as they are written: what semicolons outside of quoted strings
/// separate, trimmed.
pub(crate) fn pieces(media_type: &str) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let pieces = media_type.split(move |character| {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ';' => return !is_quoted,
            _ => {}
        }
        false
    });
    pieces.map(str::trim)
}

impl MediaKind {
    /// The kind of a media type (RFC 6838), by its essence; parameters do not count.
    pub fn of(media_type: &str) -> Self {
        match &*essence(media_type) {
            "application/json" | "*/*" | "application/*" | "text/json" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Form,
            "application/xml" | "text/xml" => Self::Xml,
            "application/yaml" | "application/x-yaml" => Self::Text,
            other if other.ends_with("+yaml") => Self::Text,
            other if other.ends_with("+json") => Self::Json,
            other if other.ends_with("+xml") && !other.starts_with("image/") => Self::Xml,
            other if other.starts_with("multipart/") => Self::Multipart,
            other if other.starts_with("text/") => Self::Text,
            _ => Self::Binary,
        }
    }

    /// The kind of a sequential media type (OAS 3.2 "Sequential Media Types") that is made of JSON
    /// texts, which [`MediaKind::of`] takes for bytes, because it asks for one value.
    pub(crate) fn of_sequence(media_type: &str) -> Option<Self> {
        match &*essence(media_type) {
            "application/jsonl"
            | "application/x-jsonl"
            | "application/jsonlines"
            | "application/x-jsonlines"
            | "application/x-ndjson"
            | "application/ndjson" => Some(Self::Lines),
            other if other == "application/json-seq" || other.ends_with("+json-seq") => {
                Some(Self::Sequence)
            }
            _ => None,
        }
    }
}

/// Returns true if bytes of that type are text. Some of these types are sent as bytes all the same,
/// because the caller may give a file ([`MediaKind::Binary`]).
pub(crate) fn is_textual(media_type: &str) -> bool {
    match MediaKind::of(media_type) {
        MediaKind::Text | MediaKind::Xml | MediaKind::Form => true,
        _ => matches!(
            &*essence(media_type),
            "application/javascript"
                | "application/graphql"
                | "application/toml"
                | "application/sql"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_told_apart_by_their_essence() {
        for (name, kind) in [
            ("application/json; charset=utf-8", MediaKind::Json),
            ("application/merge-patch+json", MediaKind::Json),
            ("*/*", MediaKind::Json),
            ("application/x-www-form-urlencoded", MediaKind::Form),
            ("multipart/form-data", MediaKind::Multipart),
            ("text/csv", MediaKind::Text),
            ("application/apply-patch+yaml", MediaKind::Text),
            ("application/soap+xml", MediaKind::Xml),
            ("image/svg+xml", MediaKind::Binary),
            ("application/octet-stream", MediaKind::Binary),
        ] {
            assert_eq!(MediaKind::of(name), kind, "{name}");
        }
    }

    #[test]
    fn sequences_of_json_texts_are_known_by_all_their_names() {
        for (name, kind) in [
            ("application/x-jsonl", Some(MediaKind::Lines)),
            ("application/jsonl; charset=utf-8", Some(MediaKind::Lines)),
            ("application/x-ndjson", Some(MediaKind::Lines)),
            ("application/geo+json-seq", Some(MediaKind::Sequence)),
            ("application/json", None),
        ] {
            assert_eq!(MediaKind::of_sequence(name), kind, "{name}");
        }
    }

    #[test]
    fn parameters_are_read_out_of_their_quotes() {
        for (media_type, expected) in [
            ("text/plain; charset=utf-8", Some("utf-8")),
            ("text/plain;a=b ; CHARSET = \"utf-8\"", Some("utf-8")),
            (
                r#"text/plain; a="; charset=no"; charset="x\"y;z""#,
                Some("x\"y;z"),
            ),
            ("text/plain; charsets=utf-8", None),
            ("charset=utf-8", None),
            ("", None),
        ] {
            assert_eq!(
                parameter(media_type, "charset").as_deref(),
                expected,
                "{media_type}"
            );
        }
    }
}
