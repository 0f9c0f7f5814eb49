//! Names of files that replies become. A reply chooses a part of a name, never a whole one, and no
//! folder.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use crate::spec::media_type;

/// Maximum length of the part of a name that a reply chooses.
const MAX_NAME_BYTES: usize = 80;
/// Maximum length of the extension that stays if a name is cut.
const MAX_EXTENSION_BYTES: usize = 16;
/// What the name of a file ends with that is not complete.
pub(super) const PARTIAL: &str = ".part";
/// Name of a file without any.
const UNNAMED: &str = "file";

/// Returns the name of a reply: that of its `Content-Disposition` (RFC 6266), else the last segment
/// of the path of its request. It consists of ASCII letters, digits, `.`, `_` and `-`, begins with
/// no dot, does not end with `.part`, and has 1 to 80 bytes. It is `file` if `holds_secret` finds a
/// secret in what it is made of, in any step.
pub(crate) fn safe_name(
    disposition: &str,
    path: &str,
    holds_secret: impl Fn(&str) -> bool,
) -> String {
    let segment = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    let decoded = percent_decode_str(segment).decode_utf8_lossy();
    let names = [
        (disposition, disposition_name(disposition)),
        (segment, Some(decoded)),
    ];
    let mut safe = names.into_iter().filter_map(|(source, name)| {
        let name = name?;
        let safe = safe_part(&name);
        let is_secret = !safe.is_empty() && [source, &name, &safe].into_iter().any(&holds_secret);
        Some(if is_secret { UNNAMED.to_owned() } else { safe })
    });
    safe.find(|name| !name.is_empty())
        .unwrap_or_else(|| UNNAMED.to_owned())
}

/// The name of `Content-Disposition`, of which `filename*` comes first (RFC 6266 section 4.3).
fn disposition_name(disposition: &str) -> Option<Cow<'_, str>> {
    let extended = media_type::parameter(disposition, "filename*");
    let extended = extended.and_then(|value| extended_value(&value));
    extended
        .map(Cow::Owned)
        .or_else(|| media_type::parameter(disposition, "filename"))
}

/// A value with a charset and a language (RFC 8187 section 3.2).
fn extended_value(value: &str) -> Option<String> {
    let (charset, rest) = value.split_once('\'')?;
    let (_, encoded) = rest.split_once('\'')?;
    let bytes: Vec<u8> = percent_decode_str(encoded).collect();
    let encoding = encoding_rs::Encoding::for_label(charset.as_bytes())?;
    Some(encoding.decode(&bytes).0.into_owned())
}

/// Returns true if a character may be in a name.
pub(crate) fn is_in_names(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | '-')
}

/// The allowed characters of the last part of a path.
pub(super) fn safe_part(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let allowed: String = last
        .chars()
        .filter(|character| is_in_names(*character))
        .collect();
    let name = without_end(allowed.trim_start_matches('.'));
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let extension = name
        .rfind('.')
        .and_then(|dot| name.get(dot..))
        .filter(|extension| extension.len() <= MAX_EXTENSION_BYTES);
    let extension = extension.unwrap_or_default();
    let stem = name
        .get(..MAX_NAME_BYTES - extension.len())
        .unwrap_or_default();
    format!("{}{extension}", without_end(stem))
}

/// A name without the ends that Windows removes or that say that a file is not complete.
fn without_end(mut name: &str) -> &str {
    while let Some(shorter) = name
        .strip_suffix('.')
        .or_else(|| name.strip_suffix(PARTIAL))
    {
        name = shorter;
    }
    name
}
