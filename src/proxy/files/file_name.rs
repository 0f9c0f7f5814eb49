//! Names of files that replies become. A reply chooses a part of a name, never a whole one, and no folder.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::spec::media_type;

/// Maximum length of the part of a name that a reply chooses.
const MAX_NAME_BYTES: usize = 80;
/// Maximum length of the extension that stays if a name is cut.
const MAX_EXTENSION_BYTES: usize = 16;
/// Name of a file without any.
const UNNAMED: &str = "file";

/// Returns the name of a reply: that of its `Content-Disposition` (RFC 6266), else the last segment of the path of its request. It consists
/// of ASCII letters, digits, `.`, `_` and `-`, begins with no dot, and has 1 to 80 bytes.
pub(crate) fn safe_name(disposition: &str, path: &str) -> String {
    let segment = percent_decode_str(path.trim_end_matches('/')).decode_utf8_lossy();
    let names = [disposition_name(disposition), Some(segment)];
    let mut safe = names.into_iter().flatten().map(|name| safe_part(&name));
    safe.find(|name| !name.is_empty()).unwrap_or_else(|| UNNAMED.to_owned())
}

/// The name of `Content-Disposition`, of which `filename*` comes first (RFC 6266 section 4.3).
fn disposition_name(disposition: &str) -> Option<Cow<'_, str>> {
    let extended = media_type::parameter(disposition, "filename*");
    let extended = extended.and_then(|value| extended_value(&value));
    extended.map(Cow::Owned).or_else(|| media_type::parameter(disposition, "filename"))
}

/// A value with a charset and a language (RFC 8187 section 3.2).
fn extended_value(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, encoded) = rest.split_once('\'')?;
    let bytes: Vec<u8> = percent_decode_str(encoded).collect();
    let encoding = encoding_rs::Encoding::for_label(charset.as_bytes())?;
    Some(encoding.decode(&bytes).0.into_owned())
}

/// The allowed characters of the last part of a path.
pub(super) fn safe_part(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_allowed = |character: &char| character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-');
    let allowed: String = last.chars().filter(is_allowed).collect();
    let name = allowed.trim_start_matches('.').trim_end_matches('.');
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let extension = name
        .rfind('.')
        .and_then(|dot| name.get(dot..))
        .filter(|extension| extension.len() <= MAX_EXTENSION_BYTES);
    let extension = extension.unwrap_or_default();
    let stem = name.get(..MAX_NAME_BYTES - extension.len()).unwrap_or_default();
    format!("{}{extension}", stem.trim_end_matches('.'))
}
