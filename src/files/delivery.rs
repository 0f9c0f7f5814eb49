//! Which replies become files, and where these go.

use std::sync::Arc;

use super::file_store::FileStore;
use super::folder::Folder;
use crate::redact::Redactor;

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
            Self::Store(store) => store.folder(),
        }
    }
}

impl FilePlan<'_> {
    /// Returns true if a reply can become a file.
    pub(crate) fn has_destination(&self) -> bool {
        self.delivery.destination.is_some()
    }

    /// The same with more redactors.
    pub(crate) fn with<'p>(&'p self, redactors: &'p [Arc<Redactor>]) -> FilePlan<'p> {
        FilePlan {
            redactors: self
                .redactors
                .iter()
                .copied()
                .chain(redactors.iter().map(Arc::as_ref))
                .collect(),
            ..*self
        }
    }
}

impl FileDelivery {
    /// 1 GiB.
    pub(crate) const DEFAULT_MAX_BYTES: u64 = 1 << 30;

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
