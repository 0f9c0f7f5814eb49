//! The state of a source when it was read, to detect later whether it has changed.

use std::hash::BuildHasher as _;
use std::path::Path;
use std::time::SystemTime;

use foldhash::quality::FixedState;

use http::HeaderMap;

use super::source::{FetchedSource, ReadError, Source, SourceReader};

/// A file or a URL as it was when it was read.
#[derive(Debug, Clone)]
pub(crate) struct Revision {
    source: Source,
    reader: SourceReader,
    digest: u64,
    conditions: HeaderMap,
    /// Time at which the file was written, and its length in bytes; `None` before the first check.
    written: Option<(SystemTime, u64)>,
}

impl Revision {
    /// Makes the revision of a source of which `found` was read; `reader` reads it again.
    pub(crate) fn new(source: Source, reader: SourceReader, found: &FetchedSource) -> Self {
        Self {
            digest: digest_bytes(&found.bytes),
            conditions: found.conditions.clone(),
            ..Self::absent(source, reader)
        }
    }

    /// A source that does not exist yet.
    pub(crate) fn absent(source: Source, reader: SourceReader) -> Self {
        Self {
            source,
            reader,
            digest: digest_bytes(&[]),
            conditions: HeaderMap::new(),
            written: None,
        }
    }

    /// Returns true if the source has changed since the last check; records its current state. A
    /// file whose time and length are the same is not read, a file that was deleted has changed,
    /// and a URL is requested conditionally (RFC 9110 section 13).
    ///
    /// # Errors
    /// [`ReadError`] if the source cannot be read.
    pub(crate) async fn has_changed(&mut self) -> Result<bool, ReadError> {
        let bytes = match &self.source {
            Source::Stdin => return Ok(false),
            Source::Path(path) => {
                let written = modified(path);
                if written.is_some() && written == self.written {
                    return Ok(false);
                }
                // A file that was absent before has not changed.
                let bytes = if written.is_none() && is_gone(path) {
                    Vec::new()
                } else {
                    self.reader.read(&self.source).await?.bytes
                };
                self.written = written;
                bytes
            }
            Source::Url(url) => {
                let Some(found) = self.reader.fetch_if_changed(url, &self.conditions).await? else {
                    return Ok(false);
                };
                self.conditions = found.conditions;
                found.bytes
            }
        };
        let digest = digest_bytes(&bytes);
        Ok(std::mem::replace(&mut self.digest, digest) != digest)
    }
}

fn is_gone(path: &Path) -> bool {
    std::fs::metadata(path).is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}

fn modified(path: &Path) -> Option<(SystemTime, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn digest_bytes(bytes: &[u8]) -> u64 {
    FixedState::default().hash_one(bytes)
}
