//! The state of a source when it was read, to detect later whether it has changed.

use std::hash::BuildHasher as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use foldhash::quality::FixedState;
use http::HeaderMap;

use super::source::{ReadError, Source, Validators, fetch_if_changed};
use crate::outbound::HttpClient;

/// A file or a URL as it was when it was read.
#[derive(Debug, Clone)]
pub struct Revision {
    source: Source,
    /// The headers that it was fetched with.
    headers: HeaderMap,
    digest: u64,
    validators: Validators,
    /// The most bytes that are read of it.
    max_bytes: usize,
    /// Time at which the file was written, and its length in bytes; `None` before the first check.
    written: Option<(SystemTime, u64)>,
}

impl Revision {
    /// Makes the revision of a source that was read as `bytes`, and may have `max_bytes` the next time.
    #[must_use]
    pub fn new(source: Source, headers: HeaderMap, bytes: &[u8], validators: Validators, max_bytes: usize) -> Self {
        Self {
            source,
            headers,
            digest: digest_bytes(bytes),
            validators,
            max_bytes,
            written: None,
        }
    }

    /// A file that does not exist yet.
    #[must_use]
    pub fn absent(path: PathBuf, max_bytes: usize) -> Self {
        Self::new(Source::Path(path), HeaderMap::new(), &[], Validators::default(), max_bytes)
    }

    /// Returns true if the source has changed since the last check; records its current state. A file whose time and length are the same is
    /// not read, a file that was deleted has changed, and a URL is requested conditionally (RFC 9110 section 13).
    ///
    /// # Errors
    /// [`ReadError`] if the source cannot be read.
    pub async fn has_changed(&mut self, client: &HttpClient) -> Result<bool, ReadError> {
        let bytes = match &self.source {
            Source::Stdin => return Ok(false),
            Source::Path(path) => {
                let written = modified(path);
                if written.is_none() && is_gone(path) {
                    // A file that was absent before has not changed.
                    let nothing = digest_bytes(&[]);
                    self.written = None;
                    return Ok(std::mem::replace(&mut self.digest, nothing) != nothing);
                }
                if written.is_some() && written == self.written {
                    return Ok(false);
                }
                let bytes = self.source.read(client, &self.headers, self.max_bytes).await?;
                self.written = written;
                bytes
            }
            Source::Url(url) => {
                let Some(found) = fetch_if_changed(client, url, &self.headers, &self.validators, self.max_bytes).await? else {
                    return Ok(false);
                };
                self.validators = found.validators;
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
