//! A client's file: read, edited, kept as a backup, replaced in one step.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::entry::ClientEntry;
use super::line_ends::with_line_ends_of;
use super::own_entry::is_own_entry;
use super::place::{ClientPlace, FileFormat};
use super::{json_file, toml_file};
use crate::config::settings::ClientName;

/// What is larger is not a configuration that a person wrote.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// What the mark of a file that `install` made says to whoever finds it.
const MADE_BY_INSTALL: &str = "openapi-mcp install made the file beside this one, and uninstall removes both with its last entry.\n";

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
        let target = link_target(&place.file)?;
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
        self.find_in(self.text(), name).map_err(|why| self.untouched(&why))
    }

    fn find_in(&self, text: &str, name: &str) -> Result<Option<Value>, String> {
        match self.place.format {
            FileFormat::Toml => toml_file::find(text, self.keys(), name),
            FileFormat::Yaml => Ok(None),
            format => json_file::find(text, format, self.keys(), name),
        }
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
        let kept = kept.filter(|kept| !self.has_own_entry(kept, name));
        let is_own_file = self.made_mark().exists();
        let is_empty = |text: &str| match self.place.format {
            FileFormat::Toml => text.trim().is_empty(),
            format => json_file::is_empty_object(text, format),
        };
        let restored = kept.as_ref().filter(|kept| self.is_made_of(self.before(), kept, name));
        if let Some(kept) = restored {
            let after = Some(kept.clone()).filter(|text| !is_own_file || !is_empty(text));
            return Ok(FileChange { after });
        }
        let text = self
            .text_without(self.text(), name, kept.as_deref(), is_own_file)
            .map_err(|why| self.untouched(&why))?;
        if is_own_file && is_empty(&text) {
            return Ok(FileChange { after: None });
        }
        Ok(FileChange {
            after: Some(self.marked(&text)),
        })
    }

    fn has_own_entry(&self, whole: &str, name: &str) -> bool {
        let text = whole.strip_prefix(BOM).unwrap_or(whole);
        matches!(self.find_in(text, name), Ok(Some(entry)) if is_own_entry(self.client, name, &entry))
    }

    /// A text of the file without the entry of that name. What `backup`, the file before that entry, had already stays: keys that
    /// are empty now, and questions with the ids of ours.
    fn text_without(&self, text: &str, name: &str, backup: Option<&str>, is_own_file: bool) -> Result<String, String> {
        let format = self.place.format;
        if format == FileFormat::Toml {
            return toml_file::take_out(text, self.keys(), name);
        }
        let backup = backup.map(|backup| backup.strip_prefix(BOM).unwrap_or(backup));
        let lacked_keys = backup.is_some_and(|backup| !json_file::has_object(backup, format, self.keys()));
        let earlier = backup.map(|backup| inputs_of(backup, format)).unwrap_or_default();
        let is_own_input = |input: &Value| ClientEntry::is_input_of(name, input) && !earlier.contains(input);
        json_file::take_out(text, format, self.keys(), name, is_own_file || lacked_keys, &is_own_input)
    }

    /// Whether `whole` is the backup with the entry put in, and nothing else.
    fn is_made_of(&self, whole: &str, backup: &str, name: &str) -> bool {
        let text = whole.strip_prefix(BOM).unwrap_or(whole);
        let Ok(Some(value)) = self.find_in(text, name) else { return false };
        let plain = backup.strip_prefix(BOM).unwrap_or(backup);
        let asked = value.to_string();
        let is_ours = |input: &&Value| {
            let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
            !id.is_empty() && asked.contains(&format!("${{input:{id}}}"))
        };
        let inputs: Vec<Value> = inputs_of(text, self.place.format)
            .into_iter()
            .filter(|input| is_ours(&input))
            .collect();
        self.with_value(plain, name, &value, &inputs)
            .is_ok_and(|text| self.marked(&text) == whole)
    }

    /// Backups that were made after this entry came hold it, too. They lose it, so that the last `uninstall` restores the file as it
    /// was before the first `install`.
    fn take_out_of_backups(&self, name: &str) {
        let (Some(folder), Some(file)) = (self.target.parent(), self.target.file_name().and_then(OsStr::to_str)) else {
            return;
        };
        let own = read_text(&self.backup(name)).ok().flatten();
        let start = format!("{file}.before-");
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_backup = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.strip_prefix(&start).is_some_and(|rest| rest.strip_suffix(".bak").is_some()));
            if !is_backup || path == self.backup(name) {
                continue;
            }
            let Ok(Some(text)) = read_text(&path) else { continue };
            let plain = text.strip_prefix(BOM).unwrap_or(&text);
            if !self.find_in(plain, name).is_ok_and(|found| found.is_some()) {
                continue;
            }
            let without = match &own {
                Some(own) if self.is_made_of(&text, own, name) => Ok(own.clone()),
                own => self
                    .text_without(plain, name, own.as_deref(), self.made_mark().exists())
                    .map(|without| self.marked(&without)),
            };
            // A backup that keeps the entry is no worse than before.
            let _ = without.map(|without| write_new(&path, &without, None));
        }
    }

    /// Says that `install` made the file, so that `uninstall` may delete it.
    fn made_mark(&self) -> PathBuf {
        self.beside(".made-by-install.bak")
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut file = self.target.file_name().unwrap_or_default().to_os_string();
        file.push(suffix);
        self.target.with_file_name(file)
    }

    /// Where the file is kept as it was before an entry of that name.
    pub(crate) fn backup(&self, name: &str) -> PathBuf {
        self.beside(&format!(".before-{name}.bak"))
    }

    /// Replaces the file, if it is still the one that was read. For an entry that is added, the file is kept beside it first.
    ///
    /// # Errors
    /// [`WriteError`].
    pub(crate) fn write(&self, change: &FileChange, name: &str, is_added: bool) -> Result<(), WriteError> {
        let failed = |error: std::io::Error| WriteError::Failed(format!("`{}` cannot be written: {error}", self.place.file.display()));
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(failed)?;
        let _lock = lock_folder(folder);
        if read_text(&self.target).map_err(failed)? != self.before {
            return Err(WriteError::Changed);
        }
        let backup = self.backup(name);
        let older = read_text(&backup).ok().flatten();
        // What replaces an entry of ours does not replace the file as it was before the first one.
        let keeps_older = older
            .as_ref()
            .is_some_and(|kept| self.has_own_entry(self.before(), name) || self.is_made_of(self.before(), kept, name));
        let kept = match (is_added && !keeps_older, &self.before) {
            (false, _) => None,
            (true, Some(before)) => Some((backup.clone(), before.as_str(), older)),
            (true, None) => Some((self.made_mark(), MADE_BY_INSTALL, None)),
        };
        if let Some((path, text, _)) = &kept {
            write_new(path, text, None).map_err(failed)?;
        }
        let written = match &change.after {
            Some(text) => write_new(&self.target, text, Some(&self.target)),
            None => fs::remove_file(&self.target),
        };
        if let Err(error) = written {
            if let Some((path, _, older)) = kept {
                let _ = match older {
                    Some(older) => write_new(&path, &older, None),
                    None => fs::remove_file(&path),
                };
            }
            return Err(failed(error));
        }
        if !is_added {
            self.take_out_of_backups(name);
            let _ = fs::remove_file(&backup);
        }
        if change.after.is_none() {
            let _ = fs::remove_file(self.made_mark());
        }
        Ok(())
    }
}

/// Keeps other runs of `install` from writing into the folder until it is dropped, where the system locks folders. Without the lock,
/// of two that write at once one would be lost.
fn lock_folder(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// The questions of VS Code in a text.
fn inputs_of(text: &str, format: FileFormat) -> Vec<Value> {
    if format == FileFormat::Toml {
        return Vec::new();
    }
    match json_file::find(text, format, &[], "inputs") {
        Ok(Some(Value::Array(inputs))) => inputs,
        _ => Vec::new(),
    }
}

/// The file that a path leads to through symbolic links, also where that file is not there yet.
fn link_target(file: &Path) -> Result<PathBuf, String> {
    const MAX_LINKS: usize = 40;
    if let Ok(target) = fs::canonicalize(file) {
        return Ok(target);
    }
    let mut target = file.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&target) else {
            if target == file {
                return Ok(target);
            }
            let folder = target.parent().unwrap_or(Path::new("."));
            return match (fs::canonicalize(folder), target.file_name()) {
                (Ok(folder), Some(name)) => Ok(folder.join(name)),
                _ => Err(format!(
                    "`{}` is a symbolic link to `{}`, whose folder is missing; make the folder, or remove the link",
                    file.display(),
                    target.display()
                )),
            };
        };
        target = target.parent().unwrap_or(Path::new(".")).join(next);
    }
    Err(format!("`{}` is a symbolic link that leads to itself", file.display()))
}

/// Why a file was not written.
pub(crate) enum WriteError {
    /// Somebody else wrote it meanwhile.
    Changed,
    Failed(String),
}

fn read_text(path: &Path) -> std::io::Result<Option<String>> {
    // Opening a pipe would wait for its other end.
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => return Err(std::io::Error::other("it is not a regular file")),
        Ok(_) => {}
    }
    let file = File::open(path)?;
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
