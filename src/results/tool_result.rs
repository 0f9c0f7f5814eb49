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
use crate::redact::Redactor;
use crate::redact::json::NumberMark;

/// The result of a call.
#[derive(Debug, Default)]
pub struct ToolResult {
    /// Its content, without notes.
    text: String,
    form: ResultForm,
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

/// The structured content of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ResultForm {
    /// Of text: none.
    #[default]
    Plain,
    /// The text as `result`, because the tool has an output schema.
    Structured,
    /// The text as `result`, and both forms are that object.
    Quoted,
    /// Of compact JSON, as `serde_json` writes it: the object itself.
    Object,
    /// The JSON as `result`: it is no object, or the output schema says so.
    Wrapped,
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

impl ToolResult {
    /// A success that is JSON. `json` must be what `serde_json` would write. `is_wrapped` says that
    /// an object is wrapped too.
    pub(crate) fn of_compact_json(text: String, is_wrapped: bool) -> Self {
        let form = if is_wrapped || !text.starts_with('{') {
            ResultForm::Wrapped
        } else {
            ResultForm::Object
        };
        Self::of_text(text, form)
    }

    /// A success of that form.
    pub(crate) fn of_text(text: impl Into<String>, form: ResultForm) -> Self {
        Self {
            text: text.into(),
            form,
            ..Self::default()
        }
    }

    /// An error.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::of_text(text, ResultForm::Plain)
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

    /// Adds an entry to `_meta`.
    pub(crate) fn insert_meta(&mut self, key: &str, value: Value) {
        self.meta.insert(key.to_owned(), value);
    }

    /// Makes it an error that begins with a sentence. Clients do not check the content of errors.
    pub(crate) fn into_error(self, sentence: &str) -> Self {
        let text = match self.text.as_str() {
            "" => sentence.to_owned(),
            text => format!("{sentence}\n\n{text}"),
        };
        Self {
            text,
            form: ResultForm::Plain,
            is_error: true,
            ..self
        }
    }

    /// The JSON of the reply, if it is given as JSON.
    pub(crate) fn json(&self) -> Option<&str> {
        matches!(self.form, ResultForm::Object | ResultForm::Wrapped).then_some(&self.text)
    }

    /// The embedded resources of the result.
    pub(crate) fn blob_uris(&mut self) -> impl Iterator<Item = &mut String> {
        let kinds = self.media.iter_mut().map(|block| &mut block.kind);
        kinds.filter_map(MediaBlockKind::blob_uri)
    }

    /// Removes links, for clients that do not know them.
    pub(crate) fn remove_links(&mut self) {
        self.media
            .retain(|block| !matches!(block.kind, MediaBlockKind::Link { .. }));
    }

    /// Takes secrets out of all texts, which may be decoded parts of a reply.
    pub(crate) fn redact(&mut self, redactor: &Redactor, numbers: NumberMark) {
        if redactor.is_empty() {
            return;
        }
        let media = self.media.iter_mut().flat_map(|block| {
            let uri = block.kind.blob_uri().into_iter();
            uri.chain([&mut block.media_type])
        });
        let notes = self.notes.notes.iter_mut().map(|(_, text)| text);
        for text in notes.chain(media).chain([&mut self.text]) {
            redactor.redact_text(text, numbers);
        }
        for value in self.meta.values_mut() {
            if let Some(clean) = redactor.clean(value.to_string().as_bytes(), numbers) {
                *value = json::parse_value(&clean).unwrap_or_default();
            }
        }
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
        json.unwrap_or_else(|| with_lines(&self.text, &notes))
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
        &self.text
    }

    /// Returns true if the text block is the structured content.
    fn is_json(&self) -> bool {
        !matches!(self.form, ResultForm::Plain | ResultForm::Structured)
    }

    /// The structured content as JSON.
    fn structured_text(&self, notes: &[String]) -> Option<Cow<'_, str>> {
        let text = &self.text;
        match self.form {
            ResultForm::Plain => None,
            ResultForm::Object => Some(with_member(text, notes)),
            ResultForm::Wrapped => Some(wrapped(text, notes).into()),
            ResultForm::Structured | ResultForm::Quoted => {
                Some(wrapped(&quoted(text), notes).into())
            }
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
        self.text.len() * 5 / 2 + media
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
            None => json::write_string(&with_lines(&self.text, &notes), out),
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

impl MediaBlockKind {
    fn blob_uri(&mut self) -> Option<&mut String> {
        match self {
            Self::Blob { uri } => Some(uri),
            Self::Image | Self::Audio | Self::Link { .. } => None,
        }
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
            structured(ResultForm::Structured),
            (
                "a\nb\n\nCut \"here\".".into(),
                Some(json!({"result": "a\nb\n", "_notes": ["Cut \"here\"."]}))
            )
        );
        let (text, content) = structured(ResultForm::Quoted);
        assert_eq!(text, r#"{"result":"a\nb\n","_notes":["Cut \"here\"."]}"#);
        assert_eq!(content, Some(json::parse_text(&text).unwrap()));
    }

    #[test]
    fn meta_and_what_is_not_text_are_written_as_mcp_has_them() {
        let mut result =
            ToolResult::of_text("image/png, 2 bytes", ResultForm::Plain).with_media(vec![
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
