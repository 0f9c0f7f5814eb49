//! Multipart replies taken apart (RFC 2046 section 5.1).

use bytes::Bytes;
use memchr::memmem;

use crate::spec::media_type;

/// More parts than this are not taken apart.
const MAX_PARTS: usize = 256;

/// One part of a multipart body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReplyPart {
    /// The part's own media type; `text/plain` if it names none (RFC 2046 section 5.1).
    pub content_type: String,
    /// Disposition of the part; empty if it has none.
    pub disposition: String,
    /// The part's bytes.
    pub body: Bytes,
}

/// Returns the parts, or `None` if there is no boundary or no part.
pub(crate) fn parts(content_type: &str, body: &Bytes) -> Option<Vec<ReplyPart>> {
    let boundary = media_type::parameter(content_type, "boundary")?;
    let delimiter = format!("--{boundary}");
    // RFC 2046 section 5.1.1: a boundary has 1 to 70 characters.
    if !(3..=72).contains(&delimiter.len()) {
        return None;
    }
    let starts: Vec<usize> = delimiters(body, delimiter.as_bytes());
    let mut parts = Vec::new();
    for pair in starts.windows(2).take(MAX_PARTS) {
        let [start, end] = pair else { continue };
        let inner = body.get(start + delimiter.len()..*end)?;
        let inner = trim_line_end(skip_line_end(inner));
        let (head, content) = split_head(inner);
        let offset = content.as_ptr() as usize - body.as_ptr() as usize;
        parts.push(ReplyPart {
            content_type: header(head, "content-type").unwrap_or_else(|| "text/plain".into()),
            disposition: header(head, "content-disposition").unwrap_or_default(),
            body: body.slice(offset..offset + content.len()),
        });
    }
    (!parts.is_empty()).then_some(parts)
}

/// Returns the indexes at which delimiter lines begin.
fn delimiters(body: &[u8], delimiter: &[u8]) -> Vec<usize> {
    let at_line_start = |index: usize| index == 0 || body.get(index - 1) == Some(&b'\n');
    memmem::find_iter(body, delimiter)
        .filter(|index| at_line_start(*index))
        .take(MAX_PARTS + 1)
        .collect()
}

fn skip_line_end(bytes: &[u8]) -> &[u8] {
    let end = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |at| at + 1);
    bytes.get(end..).unwrap_or_default()
}

fn trim_line_end(bytes: &[u8]) -> &[u8] {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    bytes.strip_suffix(b"\r").unwrap_or(bytes)
}

fn split_head(part: &[u8]) -> (&[u8], &[u8]) {
    if let Some(content) = part
        .strip_prefix(b"\r\n")
        .or_else(|| part.strip_prefix(b"\n"))
    {
        return (&[], content);
    }
    for separator in [&b"\r\n\r\n"[..], &b"\n\n"[..]] {
        if let Some(at) = memmem::find(part, separator) {
            return (
                part.get(..at).unwrap_or_default(),
                part.get(at + separator.len()..).unwrap_or_default(),
            );
        }
    }
    (part, part.get(part.len()..).unwrap_or_default())
}

fn header(head: &[u8], wanted: &str) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_with_their_types() {
        let body = Bytes::from_static(
            b"preamble\r\n--x\r\nContent-Type: image/png\r\nX: y\r\n\r\n\x89PNG\r\n\r\n--x\r\n\r\nhello --x\r\n--x--\r\nend",
        );
        let found = parts("multipart/mixed; boundary=\"x\"", &body).unwrap();
        assert_eq!(
            found,
            [
                ReplyPart {
                    content_type: "image/png".into(),
                    disposition: String::new(),
                    body: Bytes::from_static(b"\x89PNG\r\n")
                },
                ReplyPart {
                    content_type: "text/plain".into(),
                    disposition: String::new(),
                    body: Bytes::from_static(b"hello --x")
                }
            ]
        );
    }

    #[test]
    fn what_has_no_boundary_is_not_taken_apart() {
        for (content_type, body) in [
            ("multipart/mixed", "--x\r\n\r\na\r\n--x--"),
            ("multipart/mixed; boundary=", "--"),
            ("multipart/mixed; boundary=x", "nothing"),
        ] {
            assert_eq!(
                parts(content_type, &Bytes::from_static(body.as_bytes())),
                None,
                "{content_type}"
            );
        }
    }
}
