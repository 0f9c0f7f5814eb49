//! Paths in settings. Those of the configuration file are relative to its folder, those of a flag
//! or a variable to the working directory.

use std::cell::RefCell;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use crate::spec::Source;

thread_local! {
    /// The folder that relative paths start at while a file's settings are read.
    static FOLDER: RefCell<PathBuf> = const { RefCell::new(PathBuf::new()) };
}

/// Reads settings in which relative paths start at `folder`.
pub(crate) fn read_relative_to<T>(folder: &Path, read: impl FnOnce() -> T) -> T {
    let before = FOLDER.replace(folder.to_owned());
    let read = read();
    FOLDER.set(before);
    read
}

/// An absolute path stays what it is.
fn resolve(path: &Path) -> PathBuf {
    FOLDER.with_borrow(|folder| folder.join(path))
}

/// A file or folder that a setting names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(inline))]
#[serde(transparent)]
pub(crate) struct ConfigPath(PathBuf);

impl<'de> Deserialize<'de> for ConfigPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `-` is standard output.
        let read = |text: String| {
            if text == "-" {
                text.into()
            } else {
                resolve(Path::new(&text))
            }
        };
        String::deserialize(deserializer).map(|text| Self(read(text)))
    }
}

/// Makes the path of a flag or a variable.
impl From<String> for ConfigPath {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl Deref for ConfigPath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for ConfigPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

/// A header of requests whose value is in a file: `NAME=PATH`, or `NAME=SCHEME PATH` with an
/// authentication scheme before the value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(inline))]
#[serde(transparent)]
pub(crate) struct HeaderFile(String);

impl HeaderFile {
    /// Returns the name of the header, the authentication scheme or an empty text, and the path;
    /// `None` if there is no `=`.
    pub(crate) fn parts(&self) -> Option<(&str, &str, &Path)> {
        let (name, value) = self.0.split_once('=')?;
        // A path has a separator or a dot in its first word, or no second one.
        let is_scheme = |word: &str| {
            word.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let (scheme, path) = value
            .trim()
            .split_once(' ')
            .filter(|(word, _)| is_scheme(word))
            .unwrap_or(("", value));
        Some((name, scheme, Path::new(path.trim())))
    }

    /// The same with another path.
    pub(crate) fn with_path(&self, change: impl FnOnce(&str) -> String) -> Option<Self> {
        let (name, scheme, path) = self.parts()?;
        let path = change(path.to_str()?);
        let space = if scheme.is_empty() { "" } else { " " };
        Some(Self(format!("{name}={scheme}{space}{path}")))
    }
}

impl<'de> Deserialize<'de> for HeaderFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Self(String::deserialize(deserializer)?);
        let resolved = given.with_path(|path| resolve(Path::new(path)).display().to_string());
        Ok(resolved.unwrap_or(given))
    }
}

impl From<String> for HeaderFile {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<HeaderFile> for String {
    fn from(header: HeaderFile) -> Self {
        header.0
    }
}

/// A document that a setting names: a file, an http(s) URL, or `-` for standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(inline))]
#[serde(transparent)]
pub(crate) struct ConfigSource(String);

impl ConfigSource {
    /// The source.
    ///
    /// # Errors
    /// An error if it names neither a file nor an http(s) URL.
    pub(crate) fn parse(&self) -> Result<Source, String> {
        Source::parse(&self.0).map_err(|error| error.to_string())
    }

    /// Returns true if the path is empty, as by `--spec "$UNSET"`.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

impl<'de> Deserialize<'de> for ConfigSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let resolved = match Source::parse(&text) {
            Ok(Source::Path(path)) if !text.trim().is_empty() => {
                resolve(&path).into_os_string().into_string().ok()
            }
            _ => None,
        };
        Ok(Self(resolved.unwrap_or(text)))
    }
}

impl From<String> for ConfigSource {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for ConfigSource {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_relative_path_starts_at_the_folder() {
        let folder = Path::new("/etc/mcp");
        let source = |text: &str| {
            read_relative_to(folder, || {
                serde_json::from_value::<ConfigSource>(text.into()).unwrap()
            })
            .0
        };
        for (text, expected) in [
            ("api.yaml", "/etc/mcp/api.yaml"),
            ("../api.yaml", "/etc/mcp/../api.yaml"),
            ("/api.yaml", "/api.yaml"),
            ("-", "-"),
            ("https://h.example/api.yaml", "https://h.example/api.yaml"),
            ("", ""),
        ] {
            assert_eq!(source(text), expected, "{text}");
        }
        let path = |text: &str| serde_json::from_value::<ConfigPath>(text.into()).unwrap().0;
        assert_eq!(
            read_relative_to(folder, || path("key.pem")),
            Path::new("/etc/mcp/key.pem")
        );
        assert_eq!(
            path("key.pem"),
            Path::new("key.pem"),
            "the folder counts for one file"
        );
    }
    #[test]
    fn every_flag_that_names_a_file_knows_where_its_path_starts() {
        use std::any::TypeId;

        use clap::{Args as _, Command};

        use crate::config::settings::{ApiSettings, ServerSettings};

        let command =
            ServerSettings::augment_args(ApiSettings::augment_args(Command::new("serve")));
        let mut count = 0;
        for argument in command.get_arguments() {
            let names = argument.get_value_names().unwrap_or_default();
            if names
                .iter()
                .any(|name| name.split('|').any(|name| name == "FILE" || name == "DIR"))
            {
                let read_as = argument.get_value_parser().type_id();
                let is_path = read_as == TypeId::of::<ConfigPath>()
                    || read_as == TypeId::of::<ConfigSource>();
                assert!(is_path, "{argument}");
                count += 1;
            }
        }
        assert!(count >= 8, "{count}");
    }
}
