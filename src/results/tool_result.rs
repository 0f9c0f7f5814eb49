//! The result of a call in both forms in which hosts show it: as text, and as structured content.
//! Each form is whole by itself, so both hold the notes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::result_notes::{NoteKind, ResultNotes};
use super::truncate::Loss;
use crate::call_error::SignInChallenge;
use crate::json::{self, JsonObject, NOTES_KEY, RESULT_KEY};
use crate::observe::metrics::labels::CallOutcome;

/// The result of a call.
#[derive(Debug, Default)]
pub struct ToolResult {
    body: ResultBody,
    pub(crate) notes: ResultNotes,
    media: Vec<MediaBlock>,
    is_error: bool,
    /// Outcome of the call, if the reply of the API does not decide it.
    outcome: Option<CallOutcome>,
    /// Parts of the reply that were cut off.
    pub(crate) losses: Vec<Loss>,
    meta: JsonObject,
    /// Challenge of HTTP in place of the result, by which the user signs in again.
    pub(crate) challenge: Option<SignInChallenge>,
}

/// Content of a result, without notes.
#[derive(Debug)]
enum ResultBody {
    /// Compact JSON, as `serde_json` writes it. Anything but an object is wrapped as `result`, as
    /// is an object if the output schema says so.
    Json { text: String, is_wrapped: bool },
    /// Other content.
    Text { text: String, form: TextForm },
}

/// The structured content of a result that is not JSON.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum TextForm {
    /// No structured content.
    #[default]
    Plain,
    /// The text as `result`, because the tool has an output schema.
    Structured,
    /// The text as `result`, and both forms are that object.
    Quoted,
}

/// A part of a result that is not text (MCP, tools, "Tool Result").
#[derive(Debug)]
pub(crate) struct MediaBlock {
    pub(crate) kind: MediaBlockKind,
    pub(crate) media_type: String,
    /// The bytes as base64.
    pub(crate) data: String,
}

#[derive(Debug)]
pub(crate) enum MediaBlockKind {
    Image,
    Audio,
    /// An embedded resource, by this URI.
    Blob {
        uri: String,
    },
    /// A link to a file of so many bytes (2025-06-18, tools, "Resource Links"). The text has the
    /// URI too.
    Link {
        uri: String,
        name: String,
        length: u64,
    },
}

impl Default for ResultBody {
    fn default() -> Self {
        Self::Text {
            text: String::new(),
            form: TextForm::Plain,
        }
    }
}

impl ToolResult {
    /// A success that is JSON. `json` must be what `serde_json` would write. `is_wrapped` says that
    /// an object is wrapped too.
    pub(crate) fn of_compact_json(text: String, is_wrapped: bool) -> Self {
        let is_wrapped = is_wrapped || !text.starts_with('{');
        Self {
            body: ResultBody::Json { text, is_wrapped },
            ..Self::default()
        }
    }

    /// A success that is text.
    pub(crate) fn of_text(text: impl Into<String>, form: TextForm) -> Self {
        let text = text.into();
        Self {
            body: ResultBody::Text { text, form },
            ..Self::default()
        }
    }

    /// An error.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::of_text(text, TextForm::Plain)
        }
    }

    /// The same as the end of a call that no reply of the API decides.
    pub(crate) fn ended_as(self, outcome: CallOutcome) -> Self {
        Self {
            outcome: Some(outcome),
            ..self
        }
    }

    /// Outcome of the call.
    pub(crate) fn outcome(&self) -> CallOutcome {
        let of_reply = if self.is_error {
            CallOutcome::ApiError
        } else {
            CallOutcome::Ok
        };
        self.outcome.unwrap_or(of_reply)
    }

    /// Adds parts that are not text.
    pub(crate) fn with_media(self, media: Vec<MediaBlock>) -> Self {
        Self { media, ..self }
    }

    /// Returns true if the result is an error.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Adds a sentence that both forms show.
    pub(crate) fn note(&mut self, kind: NoteKind, text: impl Into<String>) {
        self.notes.add(kind, text.into());
    }

    /// Notes that the call was made by another tool: its name, which notes show, and that of the
    /// operation.
    pub(crate) fn note_called_through(&mut self, tool: &str, operation: &str) {
        self.notes.call_through(tool, operation);
    }

    /// Adds an entry to `_meta`.
    pub(crate) fn insert_meta(&mut self, key: &str, value: Value) {
        self.meta.insert(key.to_owned(), value);
    }

    /// Makes it an error that begins with what was cut from it.
    pub(crate) fn into_cut_error(mut self, losses: &str) -> Self {
        self.notes.body_says_what_was_cut();
        self.into_error(losses)
    }

    /// Makes it an error that begins with a sentence. Clients do not check the content of errors.
    pub(crate) fn into_error(self, sentence: &str) -> Self {
        let text = match self.body {
            ResultBody::Json { text, .. } | ResultBody::Text { text, .. } => text,
        };
        let text = if text.is_empty() {
            sentence.to_owned()
        } else {
            format!("{sentence}\n\n{text}")
        };
        Self {
            body: ResultBody::Text {
                text,
                form: TextForm::Plain,
            },
            is_error: true,
            ..self
        }
    }

    /// The JSON of the reply, if it is given as JSON.
    pub(crate) fn json(&self) -> Option<&str> {
        match &self.body {
            ResultBody::Json { text, .. } => Some(text),
            ResultBody::Text { .. } => None,
        }
    }

    /// The embedded resources of the result.
    pub(crate) fn blob_uris(&mut self) -> impl Iterator<Item = &mut String> {
        self.media
            .iter_mut()
            .filter_map(|block| match &mut block.kind {
                MediaBlockKind::Blob { uri } => Some(uri),
                MediaBlockKind::Image | MediaBlockKind::Audio | MediaBlockKind::Link { .. } => None,
            })
    }

    /// Removes links, for clients that do not know them.
    pub(crate) fn remove_links(&mut self) {
        self.media
            .retain(|block| !matches!(block.kind, MediaBlockKind::Link { .. }));
    }

    /// [`ToolResult::json`], to be redacted.
    pub(crate) fn json_mut(&mut self) -> Option<&mut String> {
        match &mut self.body {
            ResultBody::Json { text, .. } => Some(text),
            ResultBody::Text { .. } => None,
        }
    }

    /// All other texts of the result, and the entries of `_meta`.
    pub(crate) fn texts_mut(&mut self) -> (impl Iterator<Item = &mut String>, &mut JsonObject) {
        let text = match &mut self.body {
            ResultBody::Json { .. } => None,
            ResultBody::Text { text, .. } => Some(text),
        };
        let media = self.media.iter_mut().flat_map(|block| {
            let uri = match &mut block.kind {
                MediaBlockKind::Blob { uri } => Some(uri),
                MediaBlockKind::Image | MediaBlockKind::Audio | MediaBlockKind::Link { .. } => None,
            };
            uri.into_iter().chain([&mut block.media_type])
        });
        (
            text.into_iter().chain(self.notes.texts_mut()).chain(media),
            &mut self.meta,
        )
    }

    /// The notes, as clients get them.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.notes.shown()
    }

    /// The text block.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let notes = self.notes.shown();
        let json = self.structured_text(&notes).filter(|_| self.is_json());
        json.unwrap_or_else(|| with_lines(self.body_text(), &notes))
    }

    /// The structured content.
    #[must_use]
    pub fn structured_content(&self) -> Option<Value> {
        json::parse_text(&self.structured_text(&self.notes.shown())?).ok()
    }

    /// The structured content without notes.
    pub(crate) fn structured_body(&self) -> Option<Value> {
        json::parse_text(&self.structured_text(&[])?).ok()
    }

    /// Returns its content, without notes.
    pub(crate) fn body_text(&self) -> &str {
        match &self.body {
            ResultBody::Json { text, .. } | ResultBody::Text { text, .. } => text,
        }
    }

    /// Returns true if the text block is the structured content.
    fn is_json(&self) -> bool {
        !matches!(
            self.body,
            ResultBody::Text {
                form: TextForm::Plain | TextForm::Structured,
                ..
            }
        )
    }

    /// The structured content as JSON.
    fn structured_text(&self, notes: &[String]) -> Option<Cow<'_, str>> {
        match &self.body {
            ResultBody::Json {
                text,
                is_wrapped: false,
            } => Some(with_member(text, notes)),
            ResultBody::Json {
                text,
                is_wrapped: true,
            } => Some(wrapped(text, notes).into()),
            ResultBody::Text {
                form: TextForm::Plain,
                ..
            } => None,
            ResultBody::Text { text, .. } => Some(wrapped(&quoted(text), notes).into()),
        }
    }

    /// The whole result, as clients get it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut text = Vec::with_capacity(self.estimated_bytes());
        self.write_json(false, None, &mut text);
        json::parse_value(&text).unwrap_or_default()
    }

    /// Returns its approximate number of bytes as JSON.
    pub(crate) fn estimated_bytes(&self) -> usize {
        let media: usize = self.media.iter().map(|block| block.data.len() + 128).sum();
        // A text that is JSON is written twice, and once of that with escapes.
        self.body_text().len() * 5 / 2 + media
    }

    /// Writes it as JSON (MCP, `CallToolResult`); with `resultType` for clients of 2026-07-28
    /// alone. `more_meta` is further members of `_meta`, as JSON, under keys that it does not have
    /// yet.
    pub(crate) fn write_json(&self, is_modern: bool, more_meta: Option<&str>, out: &mut Vec<u8>) {
        let notes = self.notes.shown();
        let structured = self.structured_text(&notes);
        out.push(b'{');
        if is_modern {
            out.extend_from_slice(b"\"resultType\":\"complete\",");
        }
        out.extend_from_slice(b"\"content\":[{\"type\":\"text\",\"text\":");
        match structured.as_deref().filter(|_| self.is_json()) {
            Some(json) => json::write_string(json, out),
            None => json::write_string(&with_lines(self.body_text(), &notes), out),
        }
        out.push(b'}');
        for block in &self.media {
            out.push(b',');
            out.extend_from_slice(block.to_content().to_string().as_bytes());
        }
        out.push(b']');
        if let Some(json) = structured {
            out.extend_from_slice(b",\"structuredContent\":");
            out.extend_from_slice(json.as_bytes());
        }
        out.extend_from_slice(if self.is_error {
            b",\"isError\":true"
        } else {
            b",\"isError\":false"
        });
        if !self.meta.is_empty() || more_meta.is_some() {
            out.extend_from_slice(b",\"_meta\":{");
            for (index, (key, value)) in self.meta.iter().enumerate() {
                out.extend_from_slice(if index > 0 { b"," } else { b"" });
                json::write_string(key, out);
                out.push(b':');
                out.extend_from_slice(value.to_string().as_bytes());
            }
            if let Some(more) = more_meta {
                out.extend_from_slice(if self.meta.is_empty() { b"" } else { b"," });
                out.extend_from_slice(more.as_bytes());
            }
            out.push(b'}');
        }
        out.push(b'}');
    }
}

impl MediaBlock {
    fn to_content(&self) -> Value {
        let Self {
            kind,
            media_type,
            data,
        } = self;
        match kind {
            MediaBlockKind::Image => json!({"type": "image", "data": data, "mimeType": media_type}),
            MediaBlockKind::Audio => json!({"type": "audio", "data": data, "mimeType": media_type}),
            MediaBlockKind::Blob { uri } => {
                json!({"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "blob": data}})
            }
            MediaBlockKind::Link { uri, name, length } => {
                json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": media_type, "size": length})
            }
        }
    }
}

/// A text, and notes as lines after it.
fn with_lines<'t>(text: &'t str, notes: &[String]) -> Cow<'t, str> {
    if notes.is_empty() {
        return text.into();
    }
    let gap = if text.is_empty() { "" } else { "\n\n" };
    format!("{}{gap}{}", text.trim_end(), notes.join("\n")).into()
}

/// A JSON object, with notes as its last member, under a name that it does not have.
fn with_member<'t>(object: &'t str, notes: &[String]) -> Cow<'t, str> {
    let Some(open) = object.strip_suffix('}').filter(|_| !notes.is_empty()) else {
        return object.into();
    };
    let comma = if open.len() > 1 { "," } else { "" };
    format!(
        "{open}{comma}\"{}\":{}}}",
        free_notes_key(object),
        json!(notes)
    )
    .into()
}

/// The first of `_notes`, `_notes_`, `_notes__`, … that does not occur in a JSON text as a string.
fn free_notes_key(json: &str) -> String {
    let begin = format!("\"{NOTES_KEY}");
    let endings = json.match_indices(&begin).filter_map(|(at, _)| {
        let rest = json.get(at + begin.len()..)?;
        let ending = rest.len() - rest.trim_start_matches('_').len();
        rest.get(ending..)?.starts_with('"').then_some(ending)
    });
    let taken: BTreeSet<usize> = endings.collect();
    let free = (0..)
        .zip(&taken)
        .take_while(|(free, taken)| free == *taken)
        .count();
    format!("{NOTES_KEY}{}", "_".repeat(free))
}

/// JSON as the member of an object, and notes beside it.
fn wrapped(text: &str, notes: &[String]) -> String {
    let notes = match notes {
        [] => String::new(),
        notes => format!(",\"{NOTES_KEY}\":{}", json!(notes)),
    };
    format!("{{\"{RESULT_KEY}\":{text}{notes}}}")
}

fn quoted(text: &str) -> String {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    json::write_string(text, &mut quoted);
    String::from_utf8(quoted).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(result: &ToolResult) -> (String, Option<Value>) {
        let mut out = Vec::new();
        result.write_json(false, None, &mut out);
        let json: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["content"][0]["text"], *result.text());
        assert_eq!(
            json.get("structuredContent"),
            result.structured_content().as_ref()
        );
        (result.text().into_owned(), result.structured_content())
    }

    fn noted(mut result: ToolResult) -> (String, Option<Value>) {
        result.note(NoteKind::Cut, "Cut \"here\".");
        written(&result)
    }

    #[test]
    fn both_forms_of_json_are_the_same_text_with_the_notes_as_a_member() {
        for (reply, is_wrapped, plain, with_notes) in [
            (
                r#"{"a":1}"#,
                false,
                r#"{"a":1}"#,
                r#"{"a":1,"_notes":["Cut \"here\"."]}"#,
            ),
            ("{}", false, "{}", r#"{"_notes":["Cut \"here\"."]}"#),
            (
                r#"{"_notes":1}"#,
                false,
                r#"{"_notes":1}"#,
                r#"{"_notes":1,"_notes_":["Cut \"here\"."]}"#,
            ),
            (
                r#"{"_notes":1,"a":"_notes__","_notes_":2}"#,
                false,
                r#"{"_notes":1,"a":"_notes__","_notes_":2}"#,
                r#"{"_notes":1,"a":"_notes__","_notes_":2,"_notes___":["Cut \"here\"."]}"#,
            ),
            (
                "[1.50]",
                false,
                r#"{"result":[1.50]}"#,
                r#"{"result":[1.50],"_notes":["Cut \"here\"."]}"#,
            ),
            (
                "null",
                false,
                r#"{"result":null}"#,
                r#"{"result":null,"_notes":["Cut \"here\"."]}"#,
            ),
            (
                r#"{"_notes":1}"#,
                true,
                r#"{"result":{"_notes":1}}"#,
                r#"{"result":{"_notes":1},"_notes":["Cut \"here\"."]}"#,
            ),
        ] {
            let result = || ToolResult::of_compact_json(reply.to_owned(), is_wrapped);
            for ((text, structured), expected) in
                [(written(&result()), plain), (noted(result()), with_notes)]
            {
                assert_eq!(text, expected);
                assert_eq!(structured, Some(json::parse_text(expected).unwrap()));
            }
        }
    }

    #[test]
    fn notes_of_a_text_are_its_last_lines() {
        assert_eq!(
            noted(ToolResult::error("No.")),
            ("No.\n\nCut \"here\".".into(), None)
        );
        let structured = |form| noted(ToolResult::of_text("a\nb\n", form));
        assert_eq!(
            structured(TextForm::Structured),
            (
                "a\nb\n\nCut \"here\".".into(),
                Some(json!({"result": "a\nb\n", "_notes": ["Cut \"here\"."]}))
            )
        );
        let (text, content) = structured(TextForm::Quoted);
        assert_eq!(text, r#"{"result":"a\nb\n","_notes":["Cut \"here\"."]}"#);
        assert_eq!(content, Some(json::parse_text(&text).unwrap()));
    }

    #[test]
    fn meta_and_what_is_not_text_are_written_as_mcp_has_them() {
        let mut result =
            ToolResult::of_text("image/png, 2 bytes", TextForm::Plain).with_media(vec![
                MediaBlock {
                    kind: MediaBlockKind::Image,
                    media_type: "image/png".into(),
                    data: "aGk=".into(),
                },
            ]);
        result.insert_meta("key", json!({"a": 1}));
        let mut out = Vec::new();
        result.write_json(true, Some(r#""more":2"#), &mut out);
        let expected = r#"{"resultType":"complete","content":[{"type":"text","text":"image/png, 2 bytes"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"isError":false,"_meta":{"key":{"a":1},"more":2}}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
