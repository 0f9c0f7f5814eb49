//! Files that arguments hold or name: bytes as base64 or a `data:` URI (RFC 2397), with a name and a
//! media type, and files of the folder of `--allow-file-args`.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine as _, alphabet};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::call_error::CallError;
use crate::outbound::request::Piece;
use crate::spec::media_type::essence;
use crate::spec::operation::security_scheme::is_token;

/// A file to send.
#[derive(Debug)]
pub(crate) struct FileArgument {
    /// The bytes, in memory or on disk.
    pub(crate) piece: Piece,
    /// The name, if one was given.
    pub(crate) filename: Option<String>,
    /// The media type, if one was given.
    pub(crate) media_type: Option<String>,
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
    let unsendable = |problem: &str| CallError::invalid_request(argument, problem);
    let folder = folder.filter(|_| !as_base64);
    let file = match value {
        Value::String(text) => decode_file(text).ok_or("is neither base64 nor a data: URI"),
        Value::Object(object) => {
            let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
            let file = match (text("data"), text("path"), folder) {
                (Some(data), None, _) => {
                    decode_file(&data).ok_or("has a `data` that is neither base64 nor a data: URI")
                }
                (None, Some(path), Some(folder)) => {
                    let opened = folder.open(&path);
                    Ok(opened.map_err(|why| unsendable(&format!("has a `path` that {why}")))?)
                }
                (None, Some(_), None) => Err(
                    "has a `path`, but this server sends no files of its own there; give `data`",
                ),
                (Some(_), Some(_), _) => Err("has `data` and `path`; give one of them"),
                (None, None, _) => Err("has no `data` with the bytes as base64"),
            };
            let mut file = file.map_err(unsendable)?;
            file.filename = text("filename").or(file.filename);
            file.media_type = text("mediaType").or(file.media_type);
            Ok(file)
        }
        _ => Err("is not a file: give base64, a data: URI, or an object with `data`"),
    };
    let mut file = file.map_err(unsendable)?;
    if let Piece::Bytes(bytes) = &mut file.piece
        && as_base64
    {
        *bytes = STANDARD.encode(&bytes).into();
    }
    match &file.media_type {
        Some(given) if !is_media_type(given) => Err(unsendable(&format!(
            "has the media type `{}`, which is not a media type: give a type and a subtype as in `image/png`",
            given.escape_debug()
        ))),
        _ => Ok(file),
    }
}

impl FileArgument {
    fn of_bytes(bytes: Vec<u8>) -> Self {
        Self {
            piece: Piece::Bytes(bytes.into()),
            filename: None,
            media_type: None,
        }
    }

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
            Some(given) if !is_declared(given, declared) => {
                let problem = format!(
                    "has the media type `{given}`, but the API takes `{}` there",
                    declared.join("`, `")
                );
                Err(CallError::invalid_request(argument, problem))
            }
            Some(given) => Ok(Some(given)),
            None if matches!(declared, [only] if !only.contains('*')) => Ok(None),
            None => Ok(self
                .filename
                .as_deref()
                .and_then(media_type_of_name)
                .filter(|found| is_declared(found, declared))),
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
            media_type,
            ..FileArgument::of_bytes(bytes)
        });
    }
    decode_base64(text).map(FileArgument::of_bytes)
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

/// Returns true if the text is one media type: `type/subtype`, with or without parameters, and not
/// a range.
fn is_media_type(text: &str) -> bool {
    let (name, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_name = name
        .trim_matches([' ', '\t'])
        .split_once('/')
        .is_some_and(|(kind, subtype)| is_token(kind) && is_token(subtype));
    is_name && !name.contains('*') && are_parameters(parameters)
}

/// Returns true if the type is within one of the declared types and ranges; true for all types if
/// bytes of any kind, or none, are declared.
fn is_declared(media_type: &str, declared: &[&str]) -> bool {
    let given = essence(media_type);
    declared.is_empty()
        || declared.iter().any(|range| match &*essence(range) {
            "*/*" | "*" | "application/octet-stream" => true,
            range => match range.strip_suffix('*') {
                Some(kind) => given.starts_with(kind),
                None => given == range,
            },
        })
}

fn are_parameters(mut rest: &str) -> bool {
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() {
            return true;
        }
        let Some((name, value)) = rest.split_once('=') else {
            return false;
        };
        let end = match value.strip_prefix('"') {
            Some(quoted) => quoted_end(quoted).map(|end| end + 1),
            None => Some(value.find([';', ' ', '\t']).unwrap_or(value.len()))
                .filter(|end| value.get(..*end).is_some_and(is_token)),
        };
        let Some(after) = end
            .and_then(|end| value.get(end..))
            .filter(|_| is_token(name))
        else {
            return false;
        };
        rest = after.trim_start_matches([' ', '\t']);
        if !rest.is_empty() && !rest.starts_with(';') {
            return false;
        }
    }
}

/// Returns the index after the last quote of a quoted string.
fn quoted_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (index, character) in text.char_indices() {
        match character {
            _ if character.is_control() && character != '\t' => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(index + 1),
            _ => {}
        }
    }
    None
}

/// Returns the media type of a file of that name; `None` if its extension is not a common one.
fn media_type_of_name(filename: &str) -> Option<&'static str> {
    let (_, extension) = filename.rsplit_once('.')?;
    let mut known = include_str!("media_types.txt").lines();
    known.find_map(|line| {
        let (known, media_type) = line.split_once(' ')?;
        extension.eq_ignore_ascii_case(known).then_some(media_type)
    })
}

const OUTSIDE: &str = "names no file in the folder that this server sends files from";
const NOT_A_FILE: &str = "names a folder or something else that is not a regular file";
const UNREADABLE: &str = "names a file that this server cannot read";

/// The largest file that is sent, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// A folder whose files may be sent; symbolic links that lead out of it are not followed, and those
/// with an absolute path lead out. It is opened once.
#[derive(Debug, Clone)]
pub struct FileRoot {
    root: PathBuf,
    dir: Arc<Dir>,
}

impl FileRoot {
    /// The folder at `path`.
    ///
    /// # Errors
    /// An error if it is not a folder, or cannot be read.
    pub fn new(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        let dir = Arc::new(Dir::open_ambient_dir(&root, ambient_authority())?);
        Ok(Self { root, dir })
    }

    /// Returns the path within the folder, without `.` and `..`; `None` if any part of the path
    /// leads out of the folder.
    fn own(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        let path = if path.is_absolute() {
            path.strip_prefix(&self.root).ok()?
        } else {
            path
        };
        let mut own = PathBuf::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => own.push(name),
                Component::CurDir => {}
                Component::ParentDir if own.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(own)
    }

    /// Opens a path below the folder. Opening a pipe does not block.
    fn open_below(&self, own: &Path) -> Result<File, &'static str> {
        let own = if own.as_os_str().is_empty() {
            Path::new(".")
        } else {
            own
        };
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = self.dir.open_with(own, &options);
        // A path that leads out is an error of this program, without a code of the system.
        let file = file.map_err(|error| match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::PermissionDenied, Some(_)) => UNREADABLE,
            _ => OUTSIDE,
        })?;
        Ok(file.into_std())
    }

    /// Opens the file at `path`, which is relative to the folder, or whole and below it.
    ///
    /// # Errors
    /// A sentence without the names of folders. It does not reveal which files exist outside of the
    /// folder.
    fn open(&self, path: &str) -> Result<FileArgument, &'static str> {
        // The text of the path is checked first: the system's answer about a path that leads out
        // and back would reveal what exists there.
        let own = self.own(path).ok_or(OUTSIDE)?;
        let file = self.open_below(&own)?;
        let metadata = file.metadata().map_err(|_| OUTSIDE)?;
        if !metadata.is_file() {
            return Err(NOT_A_FILE);
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err("names a file of more than 4 GiB, which this server does not send");
        }
        let name = Path::new(path).file_name();
        Ok(FileArgument {
            piece: Piece::File(file, metadata.len()),
            filename: name.map(|name| name.to_string_lossy().into_owned()),
            media_type: None,
        })
    }
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

    #[test]
    fn media_types_are_told_from_what_is_none() {
        for good in [
            "image/png",
            "Text/Plain; charset=utf-8",
            "text/plain;charset=\"a\\\"; b\" ; x=y;",
            "application/vnd.a+json",
        ] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in [
            "",
            "png",
            "image/",
            "/png",
            "image/*",
            "image/png\r\nX: y",
            "image/png; a",
            "image/png; a=\"\r\n\"",
            "image/png; a=\"b",
            "image/png; a=b c",
            "image /png",
            "image/png, text/html",
            "image/p\u{0}ng",
        ] {
            assert!(!is_media_type(bad), "{bad:?}");
        }
    }

    #[test]
    fn types_fall_in_declared_ranges() {
        for (given, declared, expected) in [
            ("IMAGE/png; a=b", &["image/*"][..], true),
            ("text/html", &["image/*"], false),
            ("text/html", &["image/png", "text/html;level=1"], true),
            ("text/html", &["*/*"], true),
            ("text/html", &[], true),
            ("text/html", &["application/octet-stream"], true),
        ] {
            assert_eq!(
                is_declared(given, declared),
                expected,
                "{given} {declared:?}"
            );
        }
    }

    #[test]
    fn a_name_tells_the_media_type_by_its_extension() {
        for (name, expected) in [
            ("a.txt", Some("text/plain")),
            ("photo.JPG", Some("image/jpeg")),
            ("archive.tar.gz", Some("application/gzip")),
            ("a.unknown", None),
            ("txt", None),
            ("", None),
        ] {
            assert_eq!(media_type_of_name(name), expected, "{name}");
        }
        for line in include_str!("media_types.txt").lines() {
            let (extension, media_type) = line.split_once(' ').unwrap();
            assert!(!extension.is_empty() && is_media_type(media_type), "{line}");
        }
    }

    #[test]
    fn nothing_outside_the_folder_is_opened() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("in");
        std::fs::create_dir_all(root.join("deep")).unwrap();
        std::fs::create_dir_all(outside.path().join("in-not")).unwrap();
        for file in ["in/a.txt", "in/deep/b.txt", "secret", "in-not/c"] {
            std::fs::write(outside.path().join(file), "x").unwrap();
        }
        let folder = FileRoot::new(&root).unwrap();
        let whole = root
            .canonicalize()
            .unwrap()
            .join("a.txt")
            .display()
            .to_string();
        for path in [
            "a.txt",
            "deep/b.txt",
            "deep/../a.txt",
            "./a.txt",
            whole.as_str(),
        ] {
            let piece = folder.open(path).unwrap().piece;
            assert!(matches!(piece, Piece::File(_, 1)), "{path}");
        }
        let elsewhere = outside.path().join("secret").display().to_string();
        for path in [
            "../secret",
            "deep/../../secret",
            "../in-not/c",
            elsewhere.as_str(),
            "none",
            "a\0",
            "",
            "deep",
            "/etc/passwd",
        ] {
            assert!(folder.open(path).is_err(), "{path}");
        }
        #[cfg(unix)]
        {
            let link =
                |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
            link("deep/b.txt", "inside");
            link("../secret", "outside");
            link("..", "up");
            link("/dev/zero", "device");
            assert!(folder.open("inside").is_ok());
            for path in ["outside", "up/secret", "device", "up/in/a.txt"] {
                assert!(folder.open(path).is_err(), "{path}");
            }
            // Whether these are there must not matter.
            for there in ["../in-not/../in/a.txt", "../none/../in/a.txt"] {
                assert_eq!(folder.open(there).unwrap_err(), OUTSIDE, "{there}");
            }
            let back = outside
                .path()
                .canonicalize()
                .unwrap()
                .join("in-not/../in/a.txt")
                .display()
                .to_string();
            assert!(folder.open(&back).is_err());
        }
        assert!(FileRoot::new(&root.join("a.txt")).is_err());
        assert!(FileRoot::new(&root.join("none")).is_err());
    }

    /// Another user who can write into the folder swaps a file for a link that leads out, and for a
    /// pipe.
    #[cfg(unix)]
    #[test]
    fn p51_a_file_that_is_swapped_meanwhile_is_never_one_from_outside() {
        use std::io::Read as _;
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::time::{Duration, Instant};

        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("in");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(outside.path().join("other")).unwrap();
        std::fs::write(root.join("sub/a.txt"), "inside").unwrap();
        std::fs::write(outside.path().join("other/a.txt"), "secret").unwrap();
        let folder = FileRoot::new(&root).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (kept, swapped) = (root.join("kept"), root.join("sub"));
                while !is_done.load(Ordering::Relaxed) {
                    std::fs::rename(&swapped, &kept).unwrap();
                    symlink("../other", &swapped).unwrap();
                    std::fs::remove_file(&swapped).unwrap();
                    std::fs::rename(&kept, &swapped).unwrap();
                }
            });
            let started = Instant::now();
            let (mut read, mut tries) = (0, 0);
            while started.elapsed() < Duration::from_secs(2) {
                tries += 1;
                if let Ok(found) = folder.open("sub/a.txt") {
                    let Piece::File(mut file, _) = found.piece else {
                        unreachable!("bytes")
                    };
                    let mut text = String::new();
                    file.read_to_string(&mut text).unwrap();
                    assert_eq!(text, "inside", "after {tries} tries");
                    read += 1;
                }
            }
            is_done.store(true, Ordering::Relaxed);
            assert!(read > 0, "{tries}");
        });
        let pipe = root.join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(folder.open("pipe").unwrap_err(), NOT_A_FILE);
    }
}
