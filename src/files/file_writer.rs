//! A file while it is written, and after.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use aws_lc_rs::digest::{Context, SHA256};
use parking_lot::Mutex;
use tokio::fs::File;
use tokio::io::{AsyncWriteExt as _, BufWriter};
use url::Url;

use super::delivery::FileDestination;
use super::file_name::{PARTIAL, safe_part};
use super::file_store::bytes_of_blocks;
use super::folder::Folder;
use crate::call_error::CallError;
use crate::caller::Caller;
use crate::caller::memory_budget::{HeldMemory, OutOfMemory};
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
    /// Bytes of the store that it takes.
    held: Option<HeldMemory>,
}

/// A whole reply in a file, which is removed with this value unless it is delivered.
#[derive(Debug)]
pub struct ReceivedFile {
    /// Number of bytes.
    pub(crate) length: u64,
    /// SHA-256 in hexadecimal digits.
    pub(crate) sha256: String,
    state: Mutex<ReceivedState>,
}

#[derive(Debug)]
struct ReceivedState {
    temporary: TemporaryFile,
    /// Bytes of the store that it takes.
    held: Option<HeldMemory>,
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
        if let Err(error) = self.destination.folder().remove(&self.name)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(
                "the temporary file `{}` cannot be removed: {error}",
                self.name
            );
        }
    }
}

impl FileWriter {
    /// Makes the file of a reply to a tool; `name` is what [`super::file_name::safe_name`] returns.
    ///
    /// # Errors
    /// [`CallError::NotSaved`].
    pub(crate) fn create(
        destination: &FileDestination,
        tool: &str,
        name: &str,
        max_bytes: u64,
    ) -> Result<Self, CallError> {
        let created = match destination {
            FileDestination::Folder(folder) => create_named(folder, tool, name),
            FileDestination::Store(store) => store
                .create()
                .map(|(file, own)| (file, own, name.to_owned())),
        };
        let (file, own, final_name) = created.map_err(|error| not_saved(&error))?;
        let temporary = TemporaryFile {
            destination: destination.clone(),
            name: own,
            final_name,
            is_kept: false,
        };
        let held = match destination {
            FileDestination::Folder(_) => None,
            FileDestination::Store(store) => Some(store.begin()),
        };
        Ok(Self {
            temporary,
            file: BufWriter::with_capacity(BUFFER_BYTES, File::from_std(file)),
            digest: Context::new(&SHA256),
            length: 0,
            max_bytes,
            held,
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
        if let Some(held) = &mut self.held {
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
        let mut sha256 = String::new();
        for byte in self.digest.finish().as_ref() {
            let _ = write!(sha256, "{byte:02x}");
        }
        Ok(ReceivedFile {
            length: self.length,
            sha256,
            state: Mutex::new(ReceivedState {
                temporary: self.temporary,
                held: self.held,
            }),
        })
    }
}

impl ReceivedFile {
    /// Gives the file its final name or a URL, and keeps it.
    ///
    /// # Errors
    /// [`CallError::NotSaved`].
    pub(crate) fn deliver(&self) -> Result<DeliveredFile, CallError> {
        let mut state = self.state.lock();
        let ReceivedState { temporary, held } = &mut *state;
        let (name, final_name) = (&temporary.name, &temporary.final_name);
        let delivered = match &temporary.destination {
            FileDestination::Folder(folder) => {
                let renamed = folder.rename(name, final_name);
                renamed.map(|()| DeliveredFile::Path(folder.path_of(final_name)))
            }
            FileDestination::Store(store) => {
                let held = held.take().unwrap_or_else(|| store.begin());
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
