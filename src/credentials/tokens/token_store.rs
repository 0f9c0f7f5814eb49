//! `token_store`: refresh tokens that were replaced, and the access tokens that came with them,
//! in a file. A refresh token that is used twice may revoke all of its kind (RFC 9700 section
//! 4.13.2), so processes that share the file take turns.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use super::stored_token::{StoredToken, TokenOwner, UnsavedTokens};
use crate::files::Folder;
use crate::shared_state::keys::{OpenError, StateKeys};

/// The versions of the file: in the clear, and encrypted. Newer ones are not read.
const VERSION: u64 = 1;
const SEALED_VERSION: u64 = 2;
/// Name under which the file is encrypted.
const SEALED_NAME: &str = "token store";
/// Time for which a process waits for its turn; a token request ends before.
const LOCK_TIMEOUT: Duration = Duration::from_secs(35);
/// Suffix of the file that is written before it replaces the store.
const NEW_SUFFIX: &str = ".new";
/// Room for what a new token takes beside those that are stored.
const RESERVED_BYTES: usize = 16 << 10;
/// Interval at which it checks for its turn.
const LOCK_INTERVAL: Duration = Duration::from_millis(25);
/// Pauses before another try to write unsaved tokens: the first and the longest.
const SAVE_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// The file.
#[derive(Debug, Clone)]
pub struct TokenStore {
    pub(crate) path: PathBuf,
    /// Keys that encrypt the file, if there are any.
    keys: Option<StateKeys>,
    unsaved: Arc<UnsavedTokens>,
}

#[derive(Default, Serialize, Deserialize)]
struct StoreFile {
    version: u64,
    tokens: Vec<StoredToken>,
}

/// The file while no other process writes it.
pub(crate) struct LockedTokenStore {
    store: TokenStore,
    _lock: File,
    /// File that will replace the store, with room for a new token.
    reserved: Option<File>,
}

impl TokenStore {
    /// The store at a path, whose folder is there already. With keys, what is there in the clear is
    /// encrypted.
    ///
    /// # Errors
    /// Others can read the file, a newer version wrote it, none of the keys opens it, or nothing
    /// can be written beside it; in a sentence.
    pub(crate) fn open(path: &Path, keys: Option<StateKeys>) -> Result<Self, String> {
        let store = Self::at(path.to_owned(), keys);
        store.open_lock().map_err(|error| {
            format!(
                "no file can be written beside `{}`: {error}; name a file in a folder of its own",
                path.display()
            )
        })?;
        if !store.is_there()? {
            return Ok(store);
        }
        let file = store.read()?;
        if store.keys.is_some()
            && file.version == VERSION
            && let Some(mut locked) = store.try_lock()
        {
            // Another process may have written it since.
            locked.write(store.read()?).map_err(|problem| {
                format!("`{}` cannot be encrypted: {problem}", path.display())
            })?;
        }
        Ok(store)
    }

    /// The store at a path at which there may be neither a file nor a folder yet.
    pub(crate) fn at(path: PathBuf, keys: Option<StateKeys>) -> Self {
        Self {
            path,
            keys,
            unsaved: Arc::default(),
        }
    }

    /// Makes the folder, which only its owner can open, and checks that no other user can write to
    /// it and that a token can be kept.
    ///
    /// # Errors
    /// It cannot; in a sentence.
    pub(crate) fn prepare(&self) -> Result<(), String> {
        let folder = self.folder();
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let made = builder.create(folder);
        made.map_err(|error| format!("the folder `{}` cannot be made: {error}", folder.display()))?;
        Folder::open(folder)
            .map_err(|why| format!("the folder `{}` of the token store {why}", folder.display()))?;
        Self::open(&self.path, self.keys.clone()).map(|_| ())
    }

    /// The tokens of a login, if the file is there.
    ///
    /// # Errors
    /// Others can read the file, or it cannot be read; in a sentence.
    pub(crate) fn find_login(&self, owner: &TokenOwner) -> Result<Option<StoredToken>, String> {
        if !self.is_there()? {
            return Ok(None);
        }
        let mut tokens = self.read()?.tokens.into_iter();
        Ok(tokens.find(|token| token.owner == *owner))
    }

    /// Returns true if the file is there.
    ///
    /// # Errors
    /// It is not a plain file that its owner alone can open; in a sentence.
    fn is_there(&self) -> Result<bool, String> {
        let path = self.path.display();
        let metadata = match std::fs::metadata(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            read => read.map_err(|error| format!("`{path}` cannot be read: {error}"))?,
        };
        if !metadata.is_file() {
            return Err(format!("`{path}` is not a plain file"));
        }
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
            return Err(format!(
                "other users of this machine can open `{path}`, which holds tokens; `chmod 600` ends that"
            ));
        }
        Ok(true)
    }

    /// `FILE.lock`: a lock on the file itself would be lost with the rename that replaces it.
    fn open_lock(&self) -> io::Result<File> {
        let path = self.beside(".lock");
        match private_options().create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened,
        }
        let file = private_options().open(&path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other(format!(
                "`{}` is not a plain file",
                path.display()
            )));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            file.set_permissions(std::fs::Permissions::from_mode(PRIVATE_MODE))?;
        }
        Ok(file)
    }

    /// Makes the file that will replace the store. A file of that name is removed first, because
    /// another user may have put it there.
    fn create_new_file(&self) -> io::Result<File> {
        let path = self.beside(NEW_SUFFIX);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => private_options().create_new(true).open(&path),
        }
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent();
        folder
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// This process's turn, if it is free now.
    fn try_lock(&self) -> Option<LockedTokenStore> {
        let lock = self.open_lock().ok()?;
        lock.try_lock().ok()?;
        Some(LockedTokenStore::new(self, lock))
    }

    /// Waits for this process's turn.
    ///
    /// # Errors
    /// It did not come in time, or the lock cannot be had; in words for a model.
    pub(crate) async fn lock(&self) -> Result<LockedTokenStore, &'static str> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        let lock = self.open_lock().map_err(|error| {
            tracing::error!(
                "the lock of the token store `{}` cannot be opened: {error}",
                self.path.display()
            );
            "the token store of this server cannot be used"
        })?;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(LockedTokenStore::new(self, lock)),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    sleep(LOCK_INTERVAL).await;
                }
                Err(TryLockError::WouldBlock) => {
                    return Err("another process uses the token store of this server for too long");
                }
                Err(TryLockError::Error(error)) => {
                    tracing::error!(
                        "the token store `{}` cannot be locked: {error}",
                        self.path.display()
                    );
                    return Err("the token store of this server cannot be used");
                }
            }
        }
    }

    /// Keeps a token that cannot be written now, and tries again until it is written.
    pub(crate) fn save_later(&self, token: StoredToken) {
        if self.unsaved.keep(token) {
            tokio::spawn(save_unsaved(self.clone()));
        }
    }

    /// The records. A file that is corrupt is set aside.
    fn read(&self) -> Result<StoreFile, String> {
        let text = match std::fs::read(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(StoreFile::default());
            }
            Err(error) => return Err(format!("`{}` cannot be read: {error}", self.path.display())),
        };
        let file: Value = serde_json::from_slice(&text).unwrap_or_default();
        let read = match file.get("version").and_then(Value::as_u64) {
            Some(version) if version > SEALED_VERSION => {
                return Err(format!(
                    "`{}` was written by a newer version of openapi-mcp; use that, or name another file",
                    self.path.display()
                ));
            }
            Some(SEALED_VERSION) => self.decrypt(&file)?,
            _ => serde_json::from_value(file).ok(),
        };
        Ok(read.unwrap_or_else(|| {
            let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let aside = self.beside(&format!(".corrupt-{seconds}"));
            let moved = std::fs::rename(&self.path, &aside);
            tracing::warn!(
                "the token store `{}` cannot be understood; it is {}, and the refresh tokens of the settings are used",
                self.path.display(),
                moved.map_or_else(
                    |error| format!("overwritten ({error})"),
                    |()| format!("set aside as `{}`", aside.display())
                )
            );
            StoreFile::default()
        }))
    }

    /// Returns the records of an encrypted file; `None` if it is corrupt.
    fn decrypt(&self, file: &Value) -> Result<Option<StoreFile>, String> {
        let path = self.path.display();
        let Some(keys) = &self.keys else {
            return Err(format!(
                "`{path}` is encrypted; name its key with --state-key-env or --state-key-file"
            ));
        };
        let sealed = file.get("sealed").and_then(Value::as_str);
        let Some(sealed) = sealed.and_then(|sealed| STANDARD.decode(sealed).ok()) else {
            return Ok(None);
        };
        match keys.open(SEALED_NAME, &sealed) {
            Ok(text) => {
                let file: Option<StoreFile> = serde_json::from_slice(&text).ok();
                let version = SEALED_VERSION;
                Ok(file.map(|file| StoreFile { version, ..file }))
            }
            Err(OpenError::Damaged) => Ok(None),
            Err(error) => Err(format!("`{path}` cannot be decrypted: {error}")),
        }
    }
}

impl LockedTokenStore {
    fn new(store: &TokenStore, lock: File) -> Self {
        Self {
            store: store.clone(),
            _lock: lock,
            reserved: None,
        }
    }

    /// The newest tokens of an owner, also those that could not be written yet.
    ///
    /// # Errors
    /// The file cannot be read; in words for a model.
    pub(crate) fn find(&self, owner: &TokenOwner) -> Result<Option<StoredToken>, &'static str> {
        let file = self.store.read().map_err(|problem| unreadable(&problem))?;
        let mut tokens = file.tokens.into_iter();
        let stored = tokens.find(|token| token.owner == *owner);
        Ok(self.store.unsaved.newest(owner, stored))
    }

    /// Writes the tokens of an owner unless the file holds newer ones, and ends the turn. What
    /// cannot be written is written later.
    pub(crate) async fn save(mut self, token: StoredToken) {
        let store = self.store.clone();
        let kept = token.clone();
        let written = spawn_blocking(move || self.put_newer(&kept)).await;
        if let Err(problem) = written.unwrap_or_else(|error| Err(error.to_string())) {
            tracing::error!(
                "the token store cannot be written ({problem}); until it can, a token is lost with this process"
            );
            store.save_later(token);
        }
    }

    /// Replaces the tokens of an owner, those of another refresh token in the settings included,
    /// unless the file holds newer ones. They are on the disk afterwards.
    fn put_newer(&mut self, token: &StoredToken) -> Result<(), String> {
        let mut file = self.store.read()?;
        let is_newer =
            |known: &StoredToken| known.owner == token.owner && known.generation > token.generation;
        if !file.tokens.iter().any(is_newer) {
            file.tokens.retain(|known| known.owner.id != token.owner.id);
            file.tokens.push(token.clone());
            self.write(file)?;
        }
        self.store.unsaved.forget(token);
        Ok(())
    }

    /// Writes the tokens of a new login in place of those of the last one.
    ///
    /// # Errors
    /// They cannot be written; the end of a sentence.
    pub(crate) fn put_login(&mut self, mut token: StoredToken) -> Result<(), String> {
        let before = self.find(&token.owner)?;
        token.generation = before.map_or(1, |before| before.generation + 1);
        self.put_newer(&token)
    }

    /// Removes the tokens of an owner.
    ///
    /// # Errors
    /// The file cannot be written; the end of a sentence.
    pub(crate) fn remove(&mut self, owner: &TokenOwner) -> Result<(), String> {
        let mut file = self.store.read()?;
        file.tokens.retain(|token| token.owner.id != owner.id);
        self.write(file)
    }

    /// Makes sure that a new token can be written, before a refresh token is used that may be good
    /// for one use.
    ///
    /// # Errors
    /// It could not be written; in words for a model.
    pub(crate) async fn reserve(&mut self) -> Result<(), &'static str> {
        let store = self.store.clone();
        let reserved = spawn_blocking(move || {
            let length = std::fs::metadata(&store.path).map_or(0, |metadata| metadata.len());
            let room = usize::try_from(length)
                .unwrap_or(usize::MAX)
                .saturating_add(RESERVED_BYTES);
            let mut file = store.create_new_file()?;
            file.write_all(&vec![0; room])?;
            file.sync_all()?;
            file.rewind()?;
            Ok(file)
        });
        let reserved = reserved
            .await
            .unwrap_or_else(|error| Err(io::Error::other(error)));
        self.reserved = Some(reserved.map_err(|error| {
            tracing::error!(
                "the token store `{}` cannot be written: {error}; no refresh token is used until it can",
                self.store.path.display()
            );
            "the token store of this server cannot be written, and without it the refresh token must not be used"
        })?);
        Ok(())
    }

    fn write(&mut self, file: StoreFile) -> Result<(), String> {
        let file = StoreFile {
            version: VERSION,
            ..file
        };
        let mut text = serde_json::to_vec_pretty(&file).map_err(|error| error.to_string())?;
        if let Some(keys) = &self.store.keys {
            let sealed = keys.seal(SEALED_NAME, &text);
            let sealed = STANDARD.encode(sealed.ok_or("it cannot be encrypted")?);
            let file = json!({"version": SEALED_VERSION, "sealed": sealed});
            text = serde_json::to_vec_pretty(&file).map_err(|error| error.to_string())?;
        }
        self.replace(&text).map_err(|error| error.to_string())
    }

    /// Writes a file beside the store, and renames it once it is on the disk: readers see either
    /// the old file or the new one, complete.
    fn replace(&mut self, text: &[u8]) -> io::Result<()> {
        // Not truncated first: the room of [`Self::reserve`] would be lost.
        let mut file = match self.reserved.take() {
            Some(file) => file,
            None => self.store.create_new_file()?,
        };
        file.write_all(text)?;
        file.set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
        file.sync_all()?;
        std::fs::rename(self.store.beside(NEW_SUFFIX), &self.store.path)?;
        #[cfg(unix)]
        File::open(self.store.folder())?.sync_all()?;
        Ok(())
    }
}

/// Tries until all that could not be written is in the file. The reason for the failure has been
/// logged.
async fn save_unsaved(store: TokenStore) {
    let (mut pause, max_pause) = SAVE_PAUSES;
    loop {
        sleep(pause).await;
        pause = max_pause.min(pause * 2);
        if let Some(mut locked) = store.try_lock() {
            let writing = spawn_blocking(move || {
                for token in locked.store.unsaved.all() {
                    if let Err(problem) = locked.put_newer(&token) {
                        tracing::debug!("the token store cannot be written yet: {problem}");
                    }
                }
            });
            let _ = writing.await;
        }
        if store.unsaved.is_done() {
            tracing::info!("the token store is written again");
            return;
        }
    }
}

/// Its owner alone can read and write a file.
#[cfg(unix)]
const PRIVATE_MODE: u32 = 0o600;

/// A file that its owner alone can read and write. No symbolic link is followed, and no pipe is
/// waited for.
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options
            .mode(PRIVATE_MODE)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    options
}

/// The words for a model if the store cannot be read, for a reason that is logged.
pub(super) fn unreadable(problem: &str) -> &'static str {
    tracing::error!("the token store: {problem}");
    "the token store of this server cannot be read"
}
