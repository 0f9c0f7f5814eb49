//! Settings of replies that become files.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::problems::Problems;
use crate::files::{FileDelivery, FileDestination, FileStore, Folder};
use crate::shared_state::keys::StateKeys;
use crate::transport::http::AccessOptions;

const DEFAULT_STORE_BYTES: u64 = 4 << 30;

/// Settings of replies that are saved.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct SavedFileSettings {
    /// Over stdio, save replies that are not text and too large for a result to new files in this
    /// folder; no other user may write to it
    #[arg(long, value_name = "DIR", help_heading = "Calls")]
    pub(crate) save_files: Option<PathBuf>,

    /// The maximum size of a reply that goes to a file, in bytes, instead of --max-response-bytes
    /// [default: 1073741824]
    #[arg(long, hide = true, value_name = "BYTES", help_heading = "Calls")]
    pub(crate) max_file_bytes: Option<u64>,
}

impl SavedFileSettings {
    /// The same for a command that has no store of files.
    pub(crate) fn without_store(self) -> Self {
        Self {
            max_file_bytes: self.max_file_bytes.filter(|_| self.save_files.is_some()),
            ..self
        }
    }
}

/// Settings of replies to which clients get links.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct FileStoreSettings {
    /// Over HTTP, keep such replies in this folder for 10 minutes, and give clients links to them;
    /// no other user may write to it
    #[arg(long, hide = true, value_name = "DIR", help_heading = "Calls")]
    pub(crate) file_store: Option<PathBuf>,

    /// The maximum size of all files in that folder, in bytes; a client may take half of what
    /// others leave free [default: 4294967296]
    #[arg(long, hide = true, value_name = "BYTES", help_heading = "Calls")]
    pub(crate) file_store_bytes: Option<u64>,
}

/// Resolves the destination of files; what is wrong with the settings is pushed to `problems`.
/// `listener` is the address of an HTTP server, with the authentication of its clients.
pub(crate) fn resolve_delivery(
    settings: &SavedFileSettings,
    store: &FileStoreSettings,
    is_http: bool,
    listener: Option<(SocketAddr, &AccessOptions)>,
    keys: Option<&StateKeys>,
    problems: &mut Problems,
) -> FileDelivery {
    let mut delivery = FileDelivery {
        setting: if is_http {
            "`file_store`"
        } else {
            "--save-files DIR"
        },
        ..FileDelivery::default()
    };
    if let Some(bytes) = settings.max_file_bytes {
        delivery.max_bytes = bytes;
    }
    if let Some(path) = &settings.save_files {
        if is_http {
            problems.push("--save-files needs --transport stdio: clients over HTTP cannot open files of this machine; `file_store` gives them links");
        }
        let folder = open_folder("--save-files", path, problems);
        delivery.destination = folder.map(|folder| FileDestination::Folder(Arc::new(folder)));
    }
    let bytes = store.file_store_bytes.unwrap_or(DEFAULT_STORE_BYTES);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    if let Some(path) = &store.file_store {
        if !is_http {
            problems.push("`file_store` needs --transport http; over stdio, --save-files DIR saves files where the client can open them");
        }
        if let Some((bind, access)) = listener.filter(|(bind, _)| !bind.ip().is_loopback()) {
            check_exposure(bind, access, problems);
        }
        let keys = keys.cloned().or_else(StateKeys::random);
        let keys = problems.some(
            keys,
            || "`file_store`: there is no randomness for the keys of links",
        );
        let folder = open_folder("`file_store`", path, problems);
        let store = folder.zip(keys).and_then(|(folder, keys)| {
            let store = FileStore::new(folder, keys, bytes).map_err(|error| {
                format!("the folder `{}` cannot be read: {error}", path.display())
            });
            problems.ok("`file_store`", store.map(Arc::new))
        });
        if let Some(store) = &store {
            let share = u64::try_from(store.share()).unwrap_or(u64::MAX);
            if settings.max_file_bytes.is_some_and(|bytes| bytes > share) {
                problems.push(format!(
                    "`max_file_bytes` must be at most half of `file_store_bytes`, which is {share}, because a client may take no more"
                ));
            }
            delivery.max_bytes = delivery.max_bytes.min(share);
        }
        delivery.destination = store.map(FileDestination::Store);
    }
    delivery
}

fn open_folder(flag: &str, path: &Path, problems: &mut Problems) -> Option<Folder> {
    let folder = Folder::open(path);
    problems.ok(
        flag,
        folder.map_err(|why| format!("the folder `{}` {why}", path.display())),
    )
}

/// Checks the settings that a store needs if other machines can reach the server.
fn check_exposure(bind: SocketAddr, access: &AccessOptions, problems: &mut Problems) {
    if access.is_open() {
        problems.push(format!(
            "`file_store` needs clients that authenticate, because --bind {bind} can be reached by others; require a token with --auth-token-env VARIABLE or --oauth-issuer URL, or bind to 127.0.0.1"
        ));
    }
    if access.public_url.is_none() {
        problems.push(format!(
            "`file_store` needs --public-url URL, because links to files name this server as clients reach it, which --bind {bind} does not say"
        ));
    }
}
