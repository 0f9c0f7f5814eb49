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
pub struct DocumentFile {
    /// The name of the file in messages; empty for the document itself.
    pub name: String,
    number: u32,
    text: String,
    jumps: Vec<Jump>,
    /// The original text, if it was YAML: lines and columns are counted in it.
    yaml: Option<String>,
    /// Values that were read differently from how they are written, with pointers into this file.
    pub(crate) remarks: Vec<Diagnostic>,
}

impl DocumentFile {
    /// Reads bytes that contain JSON or YAML; the content determines the format, not the file name.
    ///
    /// # Errors
    /// [`LoadError`] if the text is neither.
    pub(crate) fn parse(number: u32, name: &str, bytes: Vec<u8>) -> Result<Self, LoadError> {
        // RFC 1952 section 2.3.1: the identification of gzip.
        if bytes.starts_with(&[0x1f, 0x8b]) {
            return Err(LoadError::NotOpenApi(
                "it is compressed by gzip; decompress it first".into(),
            ));
        }
        let mut text = decode_text(bytes)?;
        if text.starts_with('\u{feff}') {
            text.drain(..'\u{feff}'.len_utf8());
        }
        let is_json_like = text
            .trim_start()
            .strip_prefix('{')
            .is_some_and(|rest| rest.trim_start().starts_with('"'));
        let file = |text: String, yaml, remarks| Self {
            name: name.to_owned(),
            number,
            jumps: jumps(&text),
            text,
            yaml,
            remarks,
        };
        match text.trim_start().as_bytes().first() {
            None => Err(LoadError::Empty),
            // JSON does not go through the YAML parser, which refuses legal escapes of surrogate
            // pairs, and is slower.
            Some(b'{' | b'[') => match check_json(&text) {
                Ok(()) => Ok(file(text, None, Vec::new())),
                Err(error) => {
                    let Ok(json) = yaml_to_json(&text) else {
                        return Err(LoadError::NotJson(error));
                    };
                    // The text may be a YAML flow mapping; with a quoted first name it is reported
                    // as invalid JSON.
                    let remark = is_json_like.then(|| {
                        let what = "the document is not valid JSON, and is read as YAML";
                        Diagnostic::note("#", format!("{what}: {error}"))
                    });
                    Ok(file(json, Some(text), Vec::from_iter(remark)))
                }
            },
            Some(b'<') if is_html(&text) => Err(LoadError::WebPage),
            Some(_) => {
                let json = yaml_to_json(&text).map_err(LoadError::NotYaml)?;
                Ok(file(json, Some(text), Vec::new()))
            }
        }
    }

    /// The JSON text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole value.
    #[must_use]
    pub fn root(&self) -> Node<'_> {
        Node::in_file(self.number, &self.text, &self.jumps)
    }

    /// The value at `span`.
    pub(crate) fn node(&self, span: Span) -> Node<'_> {
        Node::at(&self.text, &self.jumps, span)
    }

    /// Returns line and column, both from 1, of the values at byte offsets of the text, in their
    /// order. A value behind a YAML alias has the position of the alias.
    pub(crate) fn positions(&self, offsets: &[usize]) -> Vec<Option<Position>> {
        let mut places: Vec<(usize, usize)> = offsets
            .iter()
            .enumerate()
            .map(|(number, offset)| (*offset, number))
            .collect();
        places.sort_unstable();
        let Some(yaml) = &self.yaml else {
            return self.lines(&places);
        };
        positions(yaml, &Wanted::at(self.root(), &places), offsets.len())
    }

    /// Returns line and column of byte offsets in a JSON text, in one pass.
    fn lines(&self, places: &[(usize, usize)]) -> Vec<Option<Position>> {
        let mut found = vec![None; places.len()];
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
            if let Some(position) = found.get_mut(*number) {
                *position = Some((line, column));
            }
        }
        found
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
        let units: Vec<u16> = bytes
            .chunks_exact(2)
            .filter_map(|pair| Some(join([*pair.first()?, *pair.get(1)?])))
            .collect();
        String::from_utf16(&units).map_err(|_| LoadError::NotText(0))
    };
    match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => wide(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => wide(rest, u16::from_be_bytes),
        _ => String::from_utf8(bytes)
            .map_err(|error| LoadError::NotText(error.utf8_error().valid_up_to())),
    }
}
