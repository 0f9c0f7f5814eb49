//! Bytes that a model gives as text: base64, a `data:` URI (RFC 2397), or either with a name and a media type.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::error::CallError;

/// A file to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The name, where one was given.
    pub filename: Option<String>,
    /// The media type, where one was given.
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

/// Reads a file argument.
///
/// # Errors
/// [`CallError::Unsendable`] where the value holds no bytes.
pub fn read(argument: &str, value: &Value) -> Result<File, CallError> {
    let unsendable = |problem: &str| CallError::Unsendable {
        argument: argument.to_owned(),
        problem: problem.to_owned(),
    };
    match value {
        Value::String(text) => decode(text).ok_or_else(|| unsendable("is neither base64 nor a data: URI")),
        Value::Object(object) => {
            let data = object
                .get("data")
                .and_then(Value::as_str)
                .ok_or_else(|| unsendable("has no `data` with the bytes as base64"))?;
            let mut file = decode(data).ok_or_else(|| unsendable("has a `data` that is neither base64 nor a data: URI"))?;
            let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
            file.filename = text("filename");
            file.media_type = text("mediaType").or(file.media_type);
            Ok(file)
        }
        _ => Err(unsendable("is no file: give base64, a data: URI, or an object with `data`")),
    }
}

fn decode(text: &str) -> Option<File> {
    if let Some(uri) = text.strip_prefix("data:") {
        let (head, data) = uri.split_once(',')?;
        let (media_type, base64) = head.strip_suffix(";base64").map_or((head, false), |head| (head, true));
        let bytes = if base64 {
            decode_base64(&percent_decode_str(data).decode_utf8().ok()?)?
        } else {
            percent_decode_str(data).collect()
        };
        return Some(File {
            bytes,
            filename: None,
            media_type: Some(media_type.to_owned()).filter(|text| !text.is_empty()),
        });
    }
    Some(File {
        bytes: decode_base64(text)?,
        filename: None,
        media_type: None,
    })
}

fn decode_base64(text: &str) -> Option<Vec<u8>> {
    let compact: String = text.chars().filter(|character| !character.is_ascii_whitespace()).collect();
    STANDARD.decode(&compact).or_else(|_| URL_SAFE.decode(&compact)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_are_given_in_three_ways() {
        let file = |filename: Option<&str>, media_type: Option<&str>| File {
            bytes: b"hi?>".to_vec(),
            filename: filename.map(Into::into),
            media_type: media_type.map(Into::into),
        };
        for (value, expected) in [
            (json!("aGk/Pg=="), file(None, None)),
            (json!("aGk_\nPg"), file(None, None)),
            (json!("data:text/plain;base64,aGk/Pg=="), file(None, Some("text/plain"))),
            (json!("data:,hi%3F%3E"), file(None, None)),
            (
                json!({"data": "aGk/Pg==", "filename": "a.txt", "mediaType": "text/plain"}),
                file(Some("a.txt"), Some("text/plain")),
            ),
        ] {
            assert_eq!(read("f", &value).unwrap(), expected, "{value}");
        }
        for value in [json!("not base64!"), json!({}), json!(5), json!("data:x")] {
            assert!(read("f", &value).is_err(), "{value}");
        }
    }
}
