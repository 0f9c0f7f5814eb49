//! A client's file: read, edited, kept as a backup, replaced in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::ClientEntry;
use super::place::{ClientPlace, FileFormat};
use super::{json_file, toml_file};
use crate::config::settings::ClientName;

/// What is larger is not a configuration that a person wrote.
const MAX_FILE_BYTES: u64 = 10 << 20;

const BOM: &str = "\u{feff}";

/// A client's file as it is.
pub(crate) struct ClientFile<'p> {
    place: &'p ClientPlace,
    client: ClientName,
    /// Where a symbolic link leads.
    target: PathBuf,
    /// The text; nothing where there is no file.
    before: Option<String>,
}

/// What happens to the file.
pub(crate) struct FileChange {
    /// The whole text; nothing where the file goes.
    pub(crate) after: Option<String>,
}

impl<'p> ClientFile<'p> {
    /// Reads the file.
    ///
    /// # Errors
    /// A sentence: it cannot be read, is not UTF-8, or is too large.
    pub(crate) fn read(place: &'p ClientPlace, client: ClientName) -> Result<Self, String> {
        let target = fs::canonicalize(&place.file).unwrap_or_else(|_| place.file.clone());
        let before = read_text(&target).map_err(|error| format!("`{}` cannot be read: {error}", place.file.display()))?;
        Ok(Self {
            place,
            client,
            target,
            before,
        })
    }

    /// The text without a byte order mark.
    fn text(&self) -> &str {
        let text = self.before.as_deref().unwrap_or_default();
        text.strip_prefix(BOM).unwrap_or(text)
    }

    pub(crate) fn before(&self) -> &str {
        self.before.as_deref().unwrap_or_default()
    }

    /// The keys that lead to the servers. opencode 2.0 keeps them one level further down.
    fn keys(&self) -> &'static [&'static str] {
        let is_new_form = self.client == ClientName::Opencode && json_file::has_object(self.text(), self.place.format, &["mcp", "servers"]);
        if is_new_form { &["mcp", "servers"] } else { self.place.keys }
    }

    /// The entry of that name.
    ///
    /// # Errors
    /// The file cannot be parsed; it stays untouched.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Value>, String> {
        let found = match self.place.format {
            FileFormat::Toml => toml_file::find(self.text(), self.keys(), name),
            FileFormat::Yaml => Ok(None),
            format => json_file::find(self.text(), format, self.keys(), name),
        };
        found.map_err(|why| self.untouched(&why))
    }

    fn untouched(&self, why: &str) -> String {
        format!(
            "`{}` is not changed: {why}; --print shows the entry to paste",
            self.place.file.display()
        )
    }

    /// The file with the entry.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub(crate) fn with(&self, entry: &ClientEntry) -> Result<FileChange, String> {
        let value = entry.value(self.client);
        let inputs = entry.inputs(self.client);
        self.with_value(self.text(), &entry.name, &value, &inputs)
            .map_err(|why| self.untouched(&why))
            .map(|text| FileChange {
                after: Some(self.marked(&text)),
            })
    }

    fn with_value(&self, text: &str, name: &str, value: &Value, inputs: &[Value]) -> Result<String, String> {
        let edited = match self.place.format {
            FileFormat::Toml => toml_file::put(text, self.keys(), name, value)?,
            format => json_file::put(text, format, self.keys(), name, value, inputs)?,
        };
        Ok(with_line_ends_of(text, &edited))
    }

    /// The text with the byte order mark that it had.
    fn marked(&self, text: &str) -> String {
        let mark = if self.before().starts_with(BOM) { BOM } else { "" };
        format!("{mark}{text}")
    }

    /// The file without the entry: byte for byte what it was before `install`, where nothing else changed since.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub(crate) fn without(&self, name: &str) -> Result<FileChange, String> {
        let kept = read_text(&self.backup(name)).ok().flatten();
        if let Some(kept) = &kept
            && self.is_made_of(kept, name)
        {
            return Ok(FileChange { after: Some(kept.clone()) });
        }
        let backup = kept.as_deref().map(|text| text.strip_prefix(BOM).unwrap_or(text));
        let had_key = backup.is_some_and(|text| json_file::has_object(text, self.place.format, self.keys()));
        let text = match self.place.format {
            FileFormat::Toml => toml_file::take_out(self.text(), self.keys(), name),
            format => json_file::take_out(self.text(), format, self.keys(), name, !had_key),
        };
        let text = text.map_err(|why| self.untouched(&why))?;
        let is_empty = match self.place.format {
            FileFormat::Toml => text.trim().is_empty(),
            format => json_file::is_empty_object(&text, format),
        };
        if is_empty && backup.is_none() {
            return Ok(FileChange { after: None });
        }
        let text = with_line_ends_of(self.text(), &text);
        Ok(FileChange {
            after: Some(self.marked(&text)),
        })
    }

    /// Whether the file is the backup with the entry put in, and nothing else.
    fn is_made_of(&self, backup: &str, name: &str) -> bool {
        let Ok(Some(value)) = self.find(name) else { return false };
        let plain = backup.strip_prefix(BOM).unwrap_or(backup);
        let whole: Value = match self.place.format {
            FileFormat::Toml => Value::Null,
            format => json_file::find(self.text(), format, &[], "inputs")
                .ok()
                .flatten()
                .unwrap_or_default(),
        };
        let asked = value.to_string();
        let is_ours = |input: &&Value| {
            let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
            !id.is_empty() && asked.contains(&format!("${{input:{id}}}"))
        };
        let inputs: Vec<Value> = whole.as_array().into_iter().flatten().filter(is_ours).cloned().collect();
        self.with_value(plain, name, &value, &inputs)
            .is_ok_and(|text| self.marked(&text) == self.before())
    }

    /// Where the file is kept as it was before an entry of that name.
    pub(crate) fn backup(&self, name: &str) -> PathBuf {
        let mut file = self.target.file_name().unwrap_or_default().to_os_string();
        file.push(format!(".before-{name}.bak"));
        self.target.with_file_name(file)
    }

    /// Replaces the file, if it is still the one that was read. For an entry that is added, the file is kept beside it first.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) fn write(&self, change: &FileChange, name: &str, is_added: bool) -> Result<(), WriteError> {
        let failed = |error: std::io::Error| WriteError::Failed(format!("`{}` cannot be written: {error}", self.place.file.display()));
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        if read_text(&self.target).map_err(failed)? != self.before {
            return Err(WriteError::Changed);
        }
        let backup = self.backup(name);
        let keeps_older = is_added && read_text(&backup).ok().flatten().is_some_and(|kept| self.is_made_of(&kept, name));
        if let (true, false, Some(before)) = (is_added, keeps_older, &self.before) {
            write_new(&backup, before, None).map_err(failed)?;
        }
        match &change.after {
            Some(text) => write_new(&self.target, text, Some(&self.target)).map_err(failed)?,
            None => fs::remove_file(&self.target).map_err(failed)?,
        }
        if !is_added {
            let _ = fs::remove_file(&backup);
        }
        Ok(())
    }
}

/// Why a file was not written.
pub(crate) enum WriteError {
    /// Somebody else wrote it meanwhile.
    Changed,
    Failed(String),
}

fn read_text(path: &Path) -> std::io::Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut text = String::new();
    if file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text)? as u64 > MAX_FILE_BYTES {
        return Err(std::io::Error::other("it has more than 10 MB"));
    }
    Ok(Some(text))
}

/// Writes a file beside its place and renames it, so that nobody ever reads half of it. It gets the mode and the owner of `like`,
/// else it is for the owner alone.
fn write_new(path: &Path, text: &str, like: Option<&Path>) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.tmp", std::process::id()));
    let new = path.with_file_name(name);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        let mut file = options.open(&new)?;
        file.write_all(text.as_bytes())?;
        if let Some(found) = like.and_then(|like| fs::metadata(like).ok()) {
            keep_owner(&file, &found)?;
            file.set_permissions(found.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&new, path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

#[cfg(unix)]
fn keep_owner(file: &File, found: &fs::Metadata) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let own = file.metadata()?;
    if (own.uid(), own.gid()) == (found.uid(), found.gid()) {
        return Ok(());
    }
    std::os::unix::fs::fchown(file, Some(found.uid()), Some(found.gid()))
}

#[cfg(not(unix))]
fn keep_owner(_: &File, _: &fs::Metadata) -> std::io::Result<()> {
    Ok(())
}

/// What an edit added ends its lines as the file does.
fn with_line_ends_of(before: &str, after: &str) -> String {
    if before.contains("\r\n") {
        after.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        after.to_owned()
    }
}
