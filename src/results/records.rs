//! Replies that come record by record: server-sent events (WHATWG HTML section 9.2), JSON Lines,
//! and JSON text sequences (RFC 7464). They may never end by themselves, and are collected within
//! limits.

use serde_json::Value;

use super::compact_json::compact_json;
use crate::json::{self, is_json};
use crate::spec::media_type::{MediaKind, essence};

/// A longer record that only a tree could make compact is a text: a tree takes many times its
/// memory.
const MAX_TREE_BYTES: usize = 64 << 10;

/// Framing of the records of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// `text/event-stream`: an empty line ends an event.
    Events,
    /// `application/x-ndjson`, `application/jsonl`: a line each.
    Lines,
    /// `application/json-seq`: each begins with a record separator.
    Sequence,
}

/// Counts the records of a stream as its bytes arrive.
#[derive(Debug)]
pub struct Counter {
    framing: Framing,
    /// True if the line that is being read is not empty.
    line_begun: bool,
    after_return: bool,
    count: usize,
}

/// The first line of a reply of JSON as its bytes arrive. Gateways of gRPC, container engines and
/// watches of Kubernetes send one value a line under the type of a single one.
#[derive(Default)]
pub(crate) struct FirstLine {
    end: Option<usize>,
    /// Its first and last byte that is not white space.
    ends: Option<(u8, u8)>,
    /// True if other text than white space follows it.
    pub(crate) is_followed: bool,
}

impl FirstLine {
    /// Takes the next bytes, before which there were `before`. Each byte is looked at once, however
    /// large the body is.
    pub(crate) fn feed(&mut self, before: usize, bytes: &[u8]) {
        let mut rest = bytes;
        if self.end.is_none() {
            let length = memchr::memchr(b'\n', bytes);
            self.end = length.map(|length| before + length);
            let (line, after) = bytes.split_at(length.unwrap_or(bytes.len()));
            rest = after;
            if let [first, ..] = line.trim_ascii()
                && let Some(last) = line.trim_ascii().last()
            {
                let first = self.ends.map_or(*first, |(first, _)| first);
                self.ends = Some((first, *last));
            }
        }
        self.is_followed |= !rest.trim_ascii_start().is_empty();
    }

    /// Returns true if it begins and ends as an object or a list does.
    pub(crate) fn looks_whole(&self) -> bool {
        matches!(self.ends, Some((b'{' | b'[', b'}' | b']')))
    }

    /// Returns true if it is an object or a list.
    pub(crate) fn is_whole(&self, body: &[u8]) -> bool {
        self.looks_whole() && is_json(self.of(body))
    }

    fn of<'b>(&self, body: &'b [u8]) -> &'b [u8] {
        let line = self.end.and_then(|end| body.get(..end)).unwrap_or(body);
        line.trim_ascii()
    }
}

/// Returns true if every line is JSON, or empty.
pub(crate) fn are_json_lines(body: &[u8]) -> bool {
    let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.filter(|line| !line.is_empty()).all(is_json)
}

impl Framing {
    /// Returns the framing of a media type; `None` if it is not a stream of records.
    #[must_use]
    pub fn of(content_type: &str) -> Option<Self> {
        match MediaKind::of_sequence(content_type) {
            Some(MediaKind::Lines) => Some(Self::Lines),
            Some(MediaKind::Sequence) => Some(Self::Sequence),
            _ => (essence(content_type) == "text/event-stream").then_some(Self::Events),
        }
    }
}

impl Counter {
    /// A counter at the begin of a stream.
    #[must_use]
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            line_begun: false,
            after_return: false,
            count: 0,
        }
    }

    /// Takes the next bytes; gives how many records have ended so far, about: empty ones are
    /// counted as well.
    pub fn feed(&mut self, bytes: &[u8]) -> usize {
        for byte in bytes {
            let is_end = match byte {
                b'\n' if self.after_return => {
                    self.after_return = false;
                    continue;
                }
                b'\r' | b'\n' => true,
                _ => false,
            };
            self.after_return = *byte == b'\r';
            if is_end {
                let ends_record = match self.framing {
                    Framing::Events => !self.line_begun,
                    Framing::Lines | Framing::Sequence => self.line_begun,
                };
                self.count += usize::from(ends_record);
            }
            self.line_begun = !is_end;
        }
        self.count
    }
}

/// Splits a stream that was read as text into records, each as compact JSON. With `whole`, the
/// stream ended by itself, so the text at its end is a record even if nothing closes it.
#[must_use]
pub fn records(framing: Framing, text: &str, whole: bool) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match framing {
        Framing::Events => events(text, whole)
            .into_iter()
            .map(ServerSentEvent::into_record)
            .collect(),
        Framing::Lines => {
            let mut lines: Vec<&str> = text.split('\n').collect();
            // An object or a list has an end of its own.
            let is_closed =
                |line: &str| line.trim_start().starts_with(['{', '[']) && is_json(line.as_bytes());
            let rest = lines.pop().filter(|rest| whole || is_closed(rest));
            lines
                .into_iter()
                .chain(rest)
                .filter_map(json_or_text)
                .collect()
        }
        Framing::Sequence => {
            let mut texts: Vec<&str> = text.split('\u{1e}').collect();
            if !whole {
                texts.pop();
            }
            texts.into_iter().filter_map(json_or_text).collect()
        }
    }
}

/// Returns the records of [`records`] as a JSON list, and their number.
pub(crate) fn list_records(framing: Framing, text: &str, whole: bool) -> (String, usize) {
    let mut list = String::from("[");
    let records = records(framing, text, whole);
    let count = records.len();
    for (index, record) in records.into_iter().enumerate() {
        list.push_str(if index > 0 { "," } else { "" });
        list.push_str(&record);
    }
    list.push(']');
    (list, count)
}

fn json_or_text(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| compact(text))
}

/// Returns a text as compact JSON: a string if it is not JSON.
fn compact(text: &str) -> String {
    if let Some(json) = compact_json(text.as_bytes()) {
        return json.into_owned();
    }
    let parsed = Some(text)
        .filter(|text| text.len() <= MAX_TREE_BYTES)
        .and_then(|text| json::parse_text(text).ok());
    parsed.unwrap_or_else(|| text.into()).to_string()
}

/// A server-sent event.
pub(crate) struct ServerSentEvent {
    pub(crate) name: String,
    pub(crate) id: String,
    /// Data as compact JSON: a string if it is not JSON.
    pub(crate) data: String,
}

impl ServerSentEvent {
    /// The event as it is sent, with its data as JSON.
    pub(crate) fn to_text(&self) -> String {
        let fields = self.fields();
        let fields: String = fields
            .map(|(field, value)| format!("{field}: {value}\n"))
            .collect();
        format!("{fields}data: {}\n\n", self.data)
    }

    /// The name and the id, if it has them.
    fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = [("event", &*self.name), ("id", &*self.id)].into_iter();
        fields.filter(|(_, value)| !value.is_empty())
    }

    /// The event as a record; one with nothing but data is its data.
    pub(crate) fn into_record(self) -> String {
        let fields = self.fields();
        let fields: String = fields
            .map(|(key, value)| format!("\"{key}\":{},", Value::from(value)))
            .collect();
        if fields.is_empty() {
            return self.data;
        }
        format!("{{{fields}\"data\":{}}}", self.data)
    }
}

/// The events of a stream that was read as text, like [`records`].
pub(crate) fn events(text: &str, whole: bool) -> Vec<ServerSentEvent> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = Vec::new();
    let (mut name, mut id, mut data) = ("", "", Vec::new());
    for line in lines(text).chain(whole.then_some("")) {
        if line.is_empty() {
            if !data.is_empty() {
                found.push(ServerSentEvent {
                    name: name.to_owned(),
                    id: id.to_owned(),
                    data: compact(&data.join("\n")),
                });
            }
            (name, id) = ("", "");
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => name = value,
            "data" => data.push(value),
            "id" if !value.contains('\0') => id = value,
            // `retry`, comments (an empty field), and what no browser knows.
            _ => {}
        }
    }
    found
}

/// Lines that end with CR LF, LF or CR; what comes after the last end is one as well.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\r', '\n']) else {
            rest = None;
            return Some(text).filter(|text| !text.is_empty());
        };
        let (line, tail) = text.split_at_checked(end)?;
        rest = tail.strip_prefix("\r\n").or_else(|| tail.get(1..));
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn records(framing: Framing, text: &str, whole: bool) -> Vec<Value> {
        let records = super::records(framing, text, whole);
        records
            .iter()
            .map(|record| json::parse_text(record).unwrap())
            .collect()
    }

    #[test]
    fn events_are_read_as_browsers_read_them() {
        let text = ": hello\r\nretry: 5\r\ndata: {\"a\":1}\r\n\r\nevent: end\nid: 7\ndata:x\ndata: y\n\ndata\n\nevent: nothing\n\ndata: last";
        let whole = vec![
            json!({"a": 1}),
            json!({"event": "end", "id": "7", "data": "x\ny"}),
            json!(""),
            json!("last"),
        ];
        assert_eq!(records(Framing::Events, text, true), whole);
        assert_eq!(records(Framing::Events, text, false), whole[..3]);
        // Written again, they are the same.
        let again: String = events(text, true)
            .iter()
            .map(ServerSentEvent::to_text)
            .collect();
        assert_eq!(records(Framing::Events, &again, true), whole);
    }

    #[test]
    fn lines_and_sequences_are_json_or_text() {
        assert_eq!(
            records(Framing::Lines, "{\"a\":1}\r\n\n2\nno\n{\"b\"", false),
            [json!({"a": 1}), json!(2), json!("no")]
        );
        assert_eq!(records(Framing::Lines, "1\n2", true), [json!(1), json!(2)]);
        assert_eq!(
            records(Framing::Sequence, "\u{1e}1\n\u{1e}{\"a\":2}\n", true),
            [json!(1), json!({"a": 2})]
        );
    }

    #[test]
    fn media_types_are_told_apart() {
        assert_eq!(
            Framing::of("text/event-stream; charset=utf-8"),
            Some(Framing::Events)
        );
        assert_eq!(Framing::of("application/x-ndjson"), Some(Framing::Lines));
        assert_eq!(
            Framing::of("application/geo+json-seq"),
            Some(Framing::Sequence)
        );
        assert_eq!(Framing::of("application/json"), None);
    }

    proptest! {
        #[test]
        fn records_are_counted_alike_however_the_bytes_are_cut(text in "(data: ?[a-z]{0,3}|:|id: 1|\r|\n|\r\n){0,30}", at in 0_usize..60) {
            let bytes = text.as_bytes();
            let at = at.min(bytes.len());
            for framing in [Framing::Events, Framing::Lines] {
                let mut whole = Counter::new(framing);
                let mut pieces = Counter::new(framing);
                pieces.feed(&bytes[..at]);
                prop_assert_eq!(whole.feed(bytes), pieces.feed(&bytes[at..]));
            }
            let _ = records(Framing::Events, &text, true);
        }
    }
}
