//! A file that a reply becomes: where it goes, its name, and its state while it is written and
//! after. A reply chooses a part of a name, never a whole one, and no folder.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use aws_lc_rs::digest::{Context, SHA256};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt as _, BufWriter};
use url::Url;

use super::file_store::{FileStore, Folder, bytes_of_blocks};
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::caller::memory_budget::{HeldMemory, OutOfMemory};
use crate::redact::Redactor;
use crate::spec::media_type;
use crate::text;

/// Number of bytes that are written at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Number of random letters in a name.
const RANDOM_LETTERS: usize = 6;
/// Names that are tried until one is free.
const MAX_NAMES: usize = 4;
/// Maximum length of the name of a tool in that of a file.
const MAX_TOOL_BYTES: usize = 100;

/// A file that receives a reply.
pub(crate) struct FileWriter {
    temporary: TemporaryFile,
    file: BufWriter<File>,
    digest: Context,
    length: u64,
    max_bytes: u64,
}

/// A whole reply in a file, which is removed with this value unless it is delivered.
#[derive(Debug)]
pub struct ReceivedFile {
    /// Number of bytes.
    pub(crate) length: u64,
    /// SHA-256 in hexadecimal digits.
    pub(crate) sha256: String,
    temporary: Mutex<TemporaryFile>,
}

/// What a result says of a file's place.
pub(crate) enum DeliveredFile {
    /// The path of a file of this machine.
    Path(PathBuf),
    /// A URL on this server, and the name of the file for whoever saves it.
    Url { url: Url, name: String },
}

/// A file that is removed with this value unless it is kept.
#[derive(Debug)]
struct TemporaryFile {
    destination: FileDestination,
    /// The name that it has.
    name: String,
    /// The name that it gets, or is shown with.
    final_name: String,
    /// Bytes of the store that it takes.
    held: Option<HeldMemory>,
    is_kept: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let FileDestination::Store(store) = &self.destination {
            store.forget(&self.name);
        }
        if let Err(error) = self.destination.folder().remove(&self.name) {
            tracing::warn!(
                "the temporary file `{}` cannot be removed: {error}",
                self.name
            );
        }
    }
}

impl FileWriter {
    /// Makes the file of a reply to a tool; `name` is what [`safe_name`] returns.
    ///
    /// # Errors
    /// [`CallError::NotSaved`].
    pub(crate) fn create(
        destination: &FileDestination,
        tool: &str,
        name: &str,
        max_bytes: u64,
    ) -> Result<Self, CallError> {
        let (created, held) = match destination {
            FileDestination::Folder(folder) => (create_named(folder, tool, name), None),
            FileDestination::Store(store) => {
                let created = store.create();
                let created = created.map(|(file, own)| (file, own, name.to_owned()));
                (created, Some(store.budget.begin()))
            }
        };
        let (file, own, final_name) = created.map_err(|error| not_saved(&error))?;
        let temporary = TemporaryFile {
            destination: destination.clone(),
            name: own,
            final_name,
            held,
            is_kept: false,
        };
        Ok(Self {
            temporary,
            file: BufWriter::with_capacity(BUFFER_BYTES, File::from_std(file)),
            digest: Context::new(&SHA256),
            length: 0,
            max_bytes,
        })
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`CallError::FileTooLarge`], [`CallError::NotSaved`].
    pub(crate) async fn write(&mut self, bytes: &[u8], caller: &Caller) -> Result<(), CallError> {
        self.length += bytes.len() as u64;
        if self.length > self.max_bytes {
            return Err(CallError::FileTooLarge {
                limit: self.max_bytes,
            });
        }
        if let Some(held) = &mut self.temporary.held {
            let length = bytes_of_blocks(self.length);
            held.grow_to(length, caller).map_err(|OutOfMemory| CallError::NotSaved {
                sentence: "this server holds as many files for you as `file_store_bytes` allows, each for 10 minutes",
                cause: String::new(),
            })?;
        }
        self.digest.update(bytes);
        self.file
            .write_all(bytes)
            .await
            .map_err(|error| not_saved(&error))
    }

    /// Ends the file.
    ///
    /// # Errors
    /// [`CallError::NotSaved`].
    pub(crate) async fn finish(mut self) -> Result<ReceivedFile, CallError> {
        self.file.flush().await.map_err(|error| not_saved(&error))?;
        Ok(ReceivedFile {
            length: self.length,
            sha256: text::hex(self.digest.finish().as_ref()),
            temporary: Mutex::new(self.temporary),
        })
    }
}

impl ReceivedFile {
    /// Gives the file its final name or a URL, and keeps it.
    ///
    /// # Errors
    /// [`CallError::NotSaved`].
    pub(crate) fn deliver(&self) -> Result<DeliveredFile, CallError> {
        let mut temporary = self.temporary.lock();
        let held = temporary.held.take();
        let (name, final_name) = (&temporary.name, &temporary.final_name);
        let delivered = match &temporary.destination {
            FileDestination::Folder(folder) => {
                let renamed = folder.rename(name, final_name);
                renamed.map(|()| DeliveredFile::Path(folder.path_of(final_name)))
            }
            FileDestination::Store(store) => {
                let held = held.unwrap_or_else(|| store.budget.begin());
                let url = store.keep(name, final_name, self.length, held);
                url.map(|url| DeliveredFile::Url {
                    url,
                    name: final_name.clone(),
                })
            }
        };
        let delivered = delivered.map_err(|error| not_saved(&error))?;
        temporary.is_kept = true;
        Ok(delivered)
    }
}

/// Makes a file for a tool in a folder, and returns the names that it has and gets.
fn create_named(
    folder: &Folder,
    tool: &str,
    name: &str,
) -> io::Result<(std::fs::File, String, String)> {
    let mut tool = safe_part(tool);
    tool.truncate(MAX_TOOL_BYTES);
    let mut tries = 0;
    loop {
        tries += 1;
        let final_name = format!("{tool}-{}-{name}", random_letters()?);
        let partial = format!("{final_name}{PARTIAL}");
        match folder.create(&partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MAX_NAMES => {}
            Err(error) => return Err(error),
            Ok(file) => return Ok((file, partial, final_name)),
        }
    }
}

fn random_letters() -> io::Result<String> {
    let mut bytes = [0; RANDOM_LETTERS];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes
        .iter()
        .map(|byte| char::from(b'a' + byte % 26))
        .collect())
}

fn not_saved(error: &io::Error) -> CallError {
    use io::ErrorKind::{
        FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };

    let sentence = match error.kind() {
        StorageFull | QuotaExceeded => "the disk of this server is full",
        FileTooLarge => "it is larger than a file on this server may be",
        PermissionDenied | ReadOnlyFilesystem => {
            "this server may not write to its folder for files"
        }
        _ => "it cannot be written on this server",
    };
    CallError::NotSaved {
        sentence,
        cause: text::error_in_a_line(error),
    }
}

/// The operator's settings for replies that become files.
#[derive(Debug, Clone)]
pub struct FileDelivery {
    /// Destination; `None` if no reply becomes a file.
    pub destination: Option<FileDestination>,
    /// The largest file, in bytes.
    pub max_bytes: u64,
    /// The setting that would name a destination.
    pub setting: &'static str,
}

/// Destination of replies that become files. It is opened once, at the start.
#[derive(Debug, Clone)]
pub enum FileDestination {
    /// The folder of `--save-files`.
    Folder(Arc<Folder>),
    /// The folder of `file_store`.
    Store(Arc<FileStore>),
}

/// Conditions under which the reply to a call becomes a file.
pub(crate) struct FilePlan<'c> {
    pub(crate) delivery: &'c FileDelivery,
    /// Name of the tool, with which names of files begin.
    pub(crate) tool: &'c str,
    /// True if a rule makes every success a file; else those that are not text and do not fit the
    /// result.
    pub(crate) is_ruled: bool,
    /// True if JSON may say that the operation is not done yet, so that it is read before it
    /// becomes a file.
    pub(crate) may_be_status: bool,
    /// Number of bytes that a result may have; 0 is no limit.
    pub(crate) max_result_bytes: usize,
    /// Redactors for the file.
    pub(crate) redactors: Vec<&'c Redactor>,
}

impl FileDestination {
    /// Returns the folder with the files.
    pub(super) fn folder(&self) -> &Folder {
        match self {
            Self::Folder(folder) => folder,
            Self::Store(store) => &store.folder,
        }
    }
}

impl FilePlan<'_> {
    /// Returns true if a reply can become a file.
    pub(crate) fn has_destination(&self) -> bool {
        self.delivery.destination.is_some()
    }
}

impl FileDelivery {
    /// 1 GiB.
    const DEFAULT_MAX_BYTES: u64 = 1 << 30;

    /// The store of files, if they go there.
    pub(crate) fn store(&self) -> Option<&Arc<FileStore>> {
        match &self.destination {
            Some(FileDestination::Store(store)) => Some(store),
            Some(FileDestination::Folder(_)) | None => None,
        }
    }
}

impl Default for FileDelivery {
    fn default() -> Self {
        Self {
            destination: None,
            max_bytes: Self::DEFAULT_MAX_BYTES,
            setting: "--save-files DIR",
        }
    }
}

/// Maximum length of the part of a name that a reply chooses.
const MAX_NAME_BYTES: usize = 80;
/// Maximum length of the extension that stays if a name is cut.
const MAX_EXTENSION_BYTES: usize = 16;
/// What the name of a file ends with that is not complete.
const PARTIAL: &str = ".part";
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
fn safe_part(name: &str) -> String {
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
