//! One file of a document: its text as JSON, and the line and column of each value in the original
//! text.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::error::LoadError;
use super::positions::{Position, Wanted, positions};
use super::web_page::is_html;
use super::yaml::yaml_to_json;
use crate::spec::diagnostic::Diagnostic;
use crate::spec::jumps::{Jump, jumps};
use crate::spec::node::{Node, Span};

/// A file, read.
#[derive(Debug)]
pub(crate) struct DocumentFile {
    /// The name of the file in messages; empty for the document itself.
    pub(crate) name: String,
    number: u32,
    text: String,
    jumps: Vec<Jump>,
    /// The original text, if it was YAML: lines and columns are counted in it.
    yaml: Option<String>,
    /// The remark that the file was read differently from how it is written.
    pub(crate) remark: Option<Diagnostic>,
}

impl DocumentFile {
    /// Reads bytes that contain JSON or YAML; the content determines the format, not the file name.
    ///
    /// # Errors
    /// [`LoadError`] if the text is neither.
    pub(crate) fn parse(number: u32, name: &str, bytes: Vec<u8>) -> Result<Self, LoadError> {
        // RFC 1952 section 2.3.1: the identification of gzip.
        if bytes.starts_with(&[0x1f, 0x8b]) {
            let why = "it is compressed by gzip; decompress it first";
            return Err(LoadError::not_open_api(why));
        }
        let mut text = decode_text(bytes)?;
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let mut remark = None;
        let (text, yaml) = match text.trim_start().as_bytes().first() {
            None => return Err(LoadError::new("the document is empty")),
            // JSON does not go through the YAML parser, which refuses legal escapes of surrogate
            // pairs, and is slower.
            Some(b'{' | b'[') => match check_json(&text) {
                Ok(()) => (text, None),
                Err(error) => {
                    let Ok(json) = yaml_to_json(&text) else {
                        return Err(LoadError::not_json(error));
                    };
                    // The text may be a YAML flow mapping; with a quoted first name it is reported
                    // as invalid JSON.
                    let first = text.trim_start().strip_prefix('{');
                    if first.is_some_and(|rest| rest.trim_start().starts_with('"')) {
                        let what = "the document is not valid JSON, and is read as YAML";
                        remark = Some(Diagnostic::note("#", format!("{what}: {error}")));
                    }
                    (json, Some(text))
                }
            },
            Some(b'<') if is_html(&text) => {
                return Err(LoadError::new(
                    "this is a web page (HTML), not an OpenAPI document; look on that page for the link to openapi.json or openapi.yaml, and give its address",
                ));
            }
            Some(_) => {
                let json = yaml_to_json(&text).map_err(|error| {
                    LoadError::of("the document is neither JSON nor YAML", error)
                })?;
                (json, Some(text))
            }
        };
        Ok(Self {
            name: name.to_owned(),
            number,
            jumps: jumps(&text),
            text,
            yaml,
            remark,
        })
    }

    /// The JSON text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The whole value.
    pub(crate) fn root(&self) -> Node<'_> {
        Node::in_file(self.number, &self.text, &self.jumps)
    }

    /// The value at `span`.
    pub(crate) fn node(&self, span: Span) -> Node<'_> {
        Node::at(&self.text, &self.jumps, span)
    }

    /// Gives `set` the line and column, both from 1, of the values at some places, each a byte offset
    /// of the text and a number; sorted by offset. A value behind a YAML alias has the position of
    /// the alias. Of several positions of one number the last one is right.
    pub(crate) fn locate(&self, places: &[(usize, usize)], set: &mut dyn FnMut(usize, Position)) {
        match &self.yaml {
            Some(yaml) => positions(yaml, &Wanted::at(self.root(), places), set),
            None => self.lines(places, set),
        }
    }

    /// Gives `set` the line and column of places in a JSON text, in one pass.
    fn lines(&self, places: &[(usize, usize)], set: &mut dyn FnMut(usize, Position)) {
        let (mut line, mut column, mut read) = (1, 1, 0);
        for (offset, number) in places {
            let Some(text) = self.text.get(read..*offset) else {
                continue;
            };
            read = *offset;
            line += text.bytes().filter(|byte| *byte == b'\n').count();
            match text.rsplit_once('\n') {
                Some((_, last_line)) => column = 1 + last_line.chars().count(),
                None => column += text.chars().count(),
            }
            set(*number, (line, column));
        }
    }
}

/// Checks that a text is one JSON value. Only the error of reading the value says what is wrong in
/// an object, such as a trailing comma.
fn check_json(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<IgnoredAny>(text)
        .map(drop)
        .map_err(|error| serde_json::from_str::<Value>(text).err().unwrap_or(error))
}

/// Decodes UTF-8, or UTF-16 if there is a byte order mark of it.
fn decode_text(bytes: Vec<u8>) -> Result<String, LoadError> {
    let wide = |bytes: &[u8], join: fn([u8; 2]) -> u16| {
        let (pairs, _) = bytes.as_chunks();
        let units: Vec<u16> = pairs.iter().map(|pair| join(*pair)).collect();
        String::from_utf16(&units).map_err(|_| not_text(0))
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes).map_err(|error| not_text(error.utf8_error().valid_up_to())),
    }
}

fn not_text(offset: usize) -> LoadError {
    LoadError::new(format!(
        "the document is not UTF-8 text (first bad byte at offset {offset})"
    ))
}
