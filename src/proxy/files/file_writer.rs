//! A file while it is written, and after.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};
use tokio::fs::File;
use tokio::io::{AsyncWriteExt as _, BufWriter};

use super::delivery::FileDestination;
use super::file_name::safe_part;
use super::folder::Folder;
use crate::proxy::error::CallError;
use crate::text;

/// Number of bytes that are written at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Number of random letters in a name.
const RANDOM_LETTERS: usize = 6;
/// Names that are tried until one is free.
const MAX_NAMES: usize = 4;
/// Maximum length of the name of a tool in that of a file.
const MAX_TOOL_BYTES: usize = 100;
/// What the name of a file ends with that is not complete.
const PARTIAL: &str = ".part";

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
}

/// A file that is removed with this value unless it is kept.
#[derive(Debug)]
struct TemporaryFile {
    folder: Arc<Folder>,
    /// The name that it has.
    name: String,
    /// The name that it gets.
    final_name: String,
    is_kept: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Err(error) = self.folder.remove(&self.name)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("the temporary file `{}` cannot be removed: {error}", self.name);
        }
    }
}

impl FileWriter {
    /// Makes the file of a reply to a tool; `name` is what [`super::file_name::safe_name`] returns.
    ///
    /// # Errors
    /// [`CallError::NotSaved`].
    pub(crate) fn create(destination: &FileDestination, tool: &str, name: &str, max_bytes: u64) -> Result<Self, CallError> {
        let FileDestination::Folder(folder) = destination;
        let (file, temporary) = create_named(folder, tool, name).map_err(|error| not_saved(&error))?;
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
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), CallError> {
        self.length += bytes.len() as u64;
        if self.length > self.max_bytes {
            return Err(CallError::FileTooLarge { limit: self.max_bytes });
        }
        self.digest.update(bytes);
        self.file.write_all(bytes).await.map_err(|error| not_saved(&error))
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
            temporary: Mutex::new(self.temporary),
        })
    }
}

impl ReceivedFile {
    /// Gives the file its final name, and keeps it.
    ///
    /// # Errors
    /// [`CallError::NotSaved`].
    pub(crate) fn deliver(&self) -> Result<DeliveredFile, CallError> {
        let mut temporary = self.temporary.lock().unwrap_or_else(PoisonError::into_inner);
        if !temporary.is_kept {
            temporary.keep().map_err(|error| not_saved(&error))?;
        }
        Ok(DeliveredFile::Path(temporary.folder.path_of(&temporary.final_name)))
    }
}

impl TemporaryFile {
    fn keep(&mut self) -> io::Result<()> {
        self.folder.rename(&self.name, &self.final_name)?;
        self.is_kept = true;
        Ok(())
    }
}

fn create_named(folder: &Arc<Folder>, tool: &str, name: &str) -> io::Result<(std::fs::File, TemporaryFile)> {
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
            Ok(file) => {
                let temporary = TemporaryFile {
                    folder: Arc::clone(folder),
                    name: partial,
                    final_name,
                    is_kept: false,
                };
                return Ok((file, temporary));
            }
        }
    }
}

fn random_letters() -> io::Result<String> {
    let mut bytes = [0; RANDOM_LETTERS];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect())
}

fn not_saved(error: &io::Error) -> CallError {
    use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};

    let sentence = match error.kind() {
        StorageFull | QuotaExceeded => "the disk of this server is full",
        FileTooLarge => "it is larger than a file on this server may be",
        PermissionDenied | ReadOnlyFilesystem => "this server may not write to its folder for files",
        _ => "it cannot be written on this server",
    };
    CallError::NotSaved {
        sentence,
        cause: text::error_in_a_line(error),
    }
}
