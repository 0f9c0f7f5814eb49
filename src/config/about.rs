//! The key `about` of the configuration file: how the server introduces itself.

use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use quick_xml::Reader;
use quick_xml::events::Event;
use serde::{Deserialize, Serialize};
use url::Url;

use super::problems::Problems;
use crate::api::about::{
    About, AboutIcon, MAX_INSTRUCTIONS_BYTES, MAX_SUMMARY_BYTES, MAX_TITLE_BYTES,
};
use crate::spec::Source;
use crate::text::{clean, one_line};

/// The longest name of a server, in bytes.
const MAX_NAME_BYTES: usize = 60;
/// The largest file of an icon, in bytes.
const MAX_ICON_BYTES: usize = 64 << 10;

/// Introduction of the server to clients and people. What is left out comes from the document; with
/// several APIs, this is the introduction of all of them at /mcp.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping such as `{ title: Orders }`"
)]
pub(crate) struct AboutSettings {
    /// The name for programs, of letters, digits, `-`, `_` and `.`; else it is made from the title
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    /// The name for people; else the document's title
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// A sentence about the server; else the document's `info.summary`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// The URL of a page about the server; else the document's `externalDocs.url`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) website: Option<String>,
    /// An https URL, or a PNG or SVG file of at most 64 KiB; else the document's `info.x-logo.url`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) icon: Option<String>,
    /// Instructions for the model, at most 1,500 bytes; else the document's description
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<String>,
}

/// Reads the introduction; faults are pushed to `problems`.
pub(crate) fn resolve_about(settings: &AboutSettings, problems: &mut Problems) -> About {
    let mut checked =
        |key: &str, text: &Option<String>, check: fn(&str) -> Result<String, String>| {
            let checked = check(text.as_deref()?.trim());
            checked
                .map_err(|why| problems.push(format!("`about.{key}` {why}")))
                .ok()
        };
    About {
        name: checked("name", &settings.name, |name| {
            is_server_name(name).then(|| name.to_owned()).ok_or_else(|| {
                format!("takes letters, digits, `-`, `_` and `.`, at most {MAX_NAME_BYTES} of them, and must not begin with `.`")
            })
        }),
        title: checked("title", &settings.title, |text| {
            fitting(one_line(text), MAX_TITLE_BYTES)
        }),
        description: checked("description", &settings.description, |text| {
            fitting(one_line(text), MAX_SUMMARY_BYTES)
        }),
        website: checked("website", &settings.website, |text| {
            web_address(text, &["https", "http"]).map(String::from)
        }),
        instructions: checked("instructions", &settings.instructions, |text| {
            fitting(clean(text), MAX_INSTRUCTIONS_BYTES)
        }),
        icon: settings.icon.as_ref().and_then(|icon| {
            read_icon(icon)
                .map_err(|why| problems.push(format!("`about.icon` {why}")))
                .ok()
        }),
    }
}

/// Returns true if a text can be the name of a server for programs, and a part of a file's name.
pub(crate) fn is_server_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(is_allowed)
        && !name.starts_with('.')
}

/// The text, unless it is empty or too long.
fn fitting(text: String, max_bytes: usize) -> Result<String, String> {
    match text.len() {
        0 => Err("is empty; remove the key, or write a text".into()),
        length if length > max_bytes => Err(format!(
            "has {length} bytes, and at most {max_bytes} are allowed"
        )),
        _ => Ok(text),
    }
}

/// Reads an address that people or clients may open.
///
/// # Errors
/// The end of a sentence that begins with the name of the setting.
pub(crate) fn web_address(text: &str, schemes: &[&str]) -> Result<Url, String> {
    let shown = text.escape_debug();
    let url = Url::parse(text).map_err(|error| format!("is not a URL (`{shown}`): {error}"))?;
    if !schemes.contains(&url.scheme()) {
        return Err(format!(
            "must begin with `{}://`, and `{shown}` does not",
            schemes.join("://` or `")
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not contain a user or a password, because clients see it".into());
    }
    Ok(url)
}

/// Reads an icon.
fn read_icon(icon: &str) -> Result<AboutIcon, String> {
    match Source::parse(icon).map_err(|error| error.to_string())? {
        Source::Url(url) => Ok(AboutIcon {
            src: web_address(url.as_str(), &["https"])?.into(),
            media_type: None,
            size: None,
        }),
        Source::Path(path) => read_icon_file(&path),
        Source::Stdin => Err("must be an https URL or a file".into()),
    }
}

fn read_icon_file(path: &Path) -> Result<AboutIcon, String> {
    let shown = path.display();
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(MAX_ICON_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("names the file `{shown}`, which cannot be read: {error}"))?;
    if bytes.len() > MAX_ICON_BYTES {
        return Err(format!(
            "names the file `{shown}`, which has more than 64 KiB; make it smaller, or give an https URL"
        ));
    }
    let (media_type, size) = if let Some(size) = size_of_png(&bytes) {
        ("image/png", size)
    } else if is_svg(&bytes) {
        ("image/svg+xml", "any".to_owned())
    } else {
        return Err(format!(
            "names the file `{shown}`, which is neither a PNG nor an SVG image"
        ));
    };
    Ok(AboutIcon {
        src: format!("data:{media_type};base64,{}", STANDARD.encode(&bytes)),
        media_type: Some(media_type),
        size: Some(size),
    })
}

/// The size of a PNG image (W3C, PNG 3, section 11.2.1): signature, then `IHDR` with width and
/// height.
fn size_of_png(bytes: &[u8]) -> Option<String> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let dimensions = header.get(4..)?.strip_prefix(b"IHDR")?;
    let number = |at: usize| {
        let four = dimensions.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four)).filter(|number| *number > 0)
    };
    Some(format!("{}x{}", number(0)?, number(4)?))
}

/// Returns true if the root of an XML text is `svg`.
fn is_svg(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return false;
    };
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    loop {
        match reader.read_event() {
            Ok(Event::Start(root) | Event::Empty(root)) => {
                return root.local_name().as_ref() == "svg";
            }
            Ok(Event::Text(text)) if !text.trim().is_empty() => return false,
            Ok(Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}
