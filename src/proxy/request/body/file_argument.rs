//! Bytes that a model gives as text: base64, a `data:` URI (RFC 2397), or either with a name and a
//! media type.

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::file_extension::media_type_of_name;
use super::file_root::FileRoot;
use super::media_type;
use crate::call_error::CallError;
use crate::outbound::payload::Piece;

/// A file to send.
pub(crate) struct FileArgument {
    /// The bytes, in memory or on disk.
    pub piece: Piece,
    /// The name, if one was given.
    pub filename: Option<String>,
    /// The media type, if one was given.
    pub media_type: Option<String>,
}

/// Padding is often forgotten by models, and both alphabets are in use.
const STANDARD: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads a file argument; one that is on disk is opened, if `folder` contains it. With `as_base64`,
/// the bytes are sent as base64 (RFC 4648 section 4), and no file is opened for them.
///
/// # Errors
/// [`CallError::InvalidRequest`] if the value holds no bytes.
pub(crate) fn read_file_argument(
    argument: &str,
    value: &Value,
    folder: Option<&FileRoot>,
    as_base64: bool,
) -> Result<FileArgument, CallError> {
    let unsendable = |problem: &str| CallError::InvalidRequest {
        argument: argument.to_owned(),
        problem: problem.to_owned(),
    };
    let folder = folder.filter(|_| !as_base64);
    let mut file = match value {
        Value::String(text) => {
            decode_file(text).ok_or_else(|| unsendable("is neither base64 nor a data: URI"))
        }
        Value::Object(object) => {
            let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
            let mut file = match (text("data"), text("path"), folder) {
                (Some(data), None, _) => decode_file(&data).ok_or_else(|| {
                    unsendable("has a `data` that is neither base64 nor a data: URI")
                })?,
                (None, Some(path), Some(folder)) => {
                    let found = folder
                        .open(&path)
                        .map_err(|why| unsendable(&format!("has a `path` that {why}")))?;
                    FileArgument {
                        piece: Piece::File(found.file, found.length),
                        filename: found.name,
                        media_type: None,
                    }
                }
                (None, Some(_), None) => {
                    return Err(unsendable(
                        "has a `path`, but this server sends no files of its own there; give `data`",
                    ));
                }
                (Some(_), Some(_), _) => {
                    return Err(unsendable("has `data` and `path`; give one of them"));
                }
                (None, None, _) => {
                    return Err(unsendable("has no `data` with the bytes as base64"));
                }
            };
            file.filename = text("filename").or(file.filename);
            file.media_type = text("mediaType").or(file.media_type);
            Ok(file)
        }
        _ => Err(unsendable(
            "is not a file: give base64, a data: URI, or an object with `data`",
        )),
    }?;
    if let Piece::Bytes(bytes) = &mut file.piece
        && as_base64
    {
        *bytes = STANDARD.encode(&bytes).into();
    }
    match &file.media_type {
        Some(given) if !media_type::is_media_type(given) => Err(unsendable(&format!(
            "has the media type `{}`, which is not a media type: give a type and a subtype as in `image/png`",
            given.escape_debug()
        ))),
        _ => Ok(file),
    }
}

impl FileArgument {
    /// Returns the given media type, which must be one of the declared types and ranges; without
    /// one, that of the file's extension, if the declared types leave a choice and include it.
    ///
    /// # Errors
    /// [`CallError::InvalidRequest`] if the given type is none of them.
    pub(crate) fn media_type_of(
        &self,
        argument: &str,
        declared: &[&str],
    ) -> Result<Option<&str>, CallError> {
        match self.media_type.as_deref() {
            Some(given) if !media_type::is_declared(given, declared.iter().copied()) => {
                Err(CallError::InvalidRequest {
                    argument: argument.to_owned(),
                    problem: format!(
                        "has the media type `{given}`, but the API takes `{}` there",
                        declared.join("`, `")
                    ),
                })
            }
            Some(given) => Ok(Some(given)),
            None if matches!(declared, [only] if !only.contains('*')) => Ok(None),
            None => Ok(self
                .filename
                .as_deref()
                .and_then(media_type_of_name)
                .filter(|found| media_type::is_declared(found, declared.iter().copied()))),
        }
    }
}

fn decode_file(text: &str) -> Option<FileArgument> {
    if let Some(uri) = text.strip_prefix("data:") {
        let (head, data) = uri.split_once(',')?;
        let (media_type, base64) = head
            .strip_suffix(";base64")
            .map_or((head, false), |head| (head, true));
        let bytes = if base64 {
            decode_base64(&percent_decode_str(data).decode_utf8().ok()?)?
        } else {
            percent_decode_str(data).collect()
        };
        // Parameters alone are those of text (RFC 2397 section 2).
        let media_type = match media_type {
            "" => None,
            parameters if parameters.starts_with(';') => Some(format!("text/plain{parameters}")),
            named => Some(named.to_owned()),
        };
        return Some(FileArgument {
            piece: Piece::Bytes(bytes.into()),
            filename: None,
            media_type,
        });
    }
    Some(FileArgument {
        piece: Piece::Bytes(decode_base64(text)?.into()),
        filename: None,
        media_type: None,
    })
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let compact: String = text
        .chars()
        .filter(|character| !character.is_ascii_whitespace())
        .collect();
    STANDARD
        .decode(&compact)
        .or_else(|_| URL_SAFE.decode(&compact))
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_are_given_in_three_ways() {
        let file = |filename: Option<&str>, media_type: Option<&str>| {
            (filename.map(str::to_owned), media_type.map(str::to_owned))
        };
        for (value, expected) in [
            (json!("aGk/Pg=="), file(None, None)),
            (json!("aGk_\nPg"), file(None, None)),
            (
                json!("data:text/plain;base64,aGk/Pg=="),
                file(None, Some("text/plain")),
            ),
            (json!("data:,hi%3F%3E"), file(None, None)),
            (
                json!({"data": "aGk/Pg==", "filename": "a.txt", "mediaType": "text/plain"}),
                file(Some("a.txt"), Some("text/plain")),
            ),
        ] {
            let file = read_file_argument("f", &value, None, false).unwrap();
            assert!(
                matches!(&file.piece, Piece::Bytes(bytes) if bytes == "hi?>"),
                "{value}"
            );
            assert_eq!((file.filename, file.media_type), expected, "{value}");
        }
        for value in [
            json!("not base64!"),
            json!({}),
            json!(5),
            json!("data:x"),
            json!({"path": "a"}),
        ] {
            assert!(
                read_file_argument("f", &value, None, false).is_err(),
                "{value}"
            );
        }
    }
}
