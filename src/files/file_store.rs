//! The folder of `file_store`: files of replies that clients get over HTTP, for a while, by URLs
//! that are sealed.
//!
//! A URL is a capability: it says which file, of which size and until when, encrypted, and nothing
//! else is asked of its bearer.
//!
//! A folder in which files of replies are made. It is opened once: if its path leads elsewhere
//! later, files still go to the folder that was checked.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use parking_lot::Mutex;
use url::Url;

use crate::caller::memory_budget::{BLOCK_BYTES, HeldMemory, MemoryBudget};
use crate::shared_state::keys::StateKeys;
use crate::text::hex;

/// Path below which files are served.
pub(crate) const FILES_PATH: &str = "/files/";
/// Time for which a URL is good.
pub(crate) const URL_LIFETIME: Duration = Duration::from_mins(10);
/// Age at which a file that no process knows is removed.
const MAX_LEFTOVER_AGE: Duration = Duration::from_mins(20);
/// Interval of removals.
const SWEEP_INTERVAL: Duration = Duration::from_mins(1);
/// Purpose for which tokens are sealed.
const PURPOSE: &str = "file-url";
/// Length of the random identifier of a file.
const ID_BYTES: usize = 16;
/// Maximum length of a token; none of ours is longer.
const MAX_TOKEN_BYTES: usize = 512;

/// Stores files and opens them again by their URLs.
pub struct FileStore {
    pub(super) folder: Folder,
    keys: StateKeys,
    /// Counts the bytes of files, as for memory.
    pub(super) budget: MemoryBudget,
    /// The URL of `/mcp`, beside which files are.
    base: OnceLock<Url>,
    /// The files of this process by their names; `None` while one is written.
    files: Mutex<HashMap<String, Option<StoredFile>>>,
    /// Bytes of the files of other processes, which count for no client.
    others: Mutex<HeldMemory>,
}

/// A whole file.
struct StoredFile {
    ends: SystemTime,
    /// Its bytes, which count until it is removed.
    _bytes: HeldMemory,
}

/// A file that a URL leads to.
pub(crate) struct FileDownload {
    pub(crate) file: File,
    pub(crate) length: u64,
    /// The name for whoever saves it, of harmless characters.
    pub(crate) name: String,
}

impl fmt::Debug for FileStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("FileStore")
            .field(&self.folder)
            .finish()
    }
}

impl FileStore {
    /// Makes a store of at most so many bytes, those of files that are there included. A caller may
    /// hold at most half of those that others leave free.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn new(folder: Folder, keys: StateKeys, bytes: usize) -> io::Result<Self> {
        let budget = MemoryBudget::new(bytes);
        let store = Self {
            folder,
            keys,
            base: OnceLock::new(),
            files: Mutex::default(),
            others: Mutex::new(budget.begin()),
            budget,
        };
        store.count_others(&store.others()?);
        Ok(store)
    }

    /// Returns the number of bytes that a caller may hold if others hold none.
    pub(crate) fn share(&self) -> usize {
        self.budget.share()
    }

    /// Serves files beside `endpoint`, the URL of `/mcp`.
    pub(crate) fn serve_beside(&self, endpoint: Url) {
        let _ = self.base.set(endpoint);
    }

    /// Makes a file with a random name.
    pub(super) fn create(&self) -> io::Result<(File, String)> {
        let mut id = [0; ID_BYTES];
        getrandom::fill(&mut id).map_err(io::Error::other)?;
        let name = hex(&id);
        self.files.lock().insert(name.clone(), None);
        let file = self
            .folder
            .create(&name)
            .inspect_err(|_| self.forget(&name))?;
        Ok((file, name))
    }

    /// Forgets a file that was not kept.
    pub(super) fn forget(&self, name: &str) {
        self.files.lock().remove(name);
    }

    /// Keeps a whole file for a while, and returns its URL.
    pub(super) fn keep(
        &self,
        name: &str,
        shown_name: &str,
        length: u64,
        bytes: HeldMemory,
    ) -> io::Result<Url> {
        let ends = SystemTime::now() + URL_LIFETIME;
        let url = self
            .url(name, shown_name, length, ends)
            .ok_or_else(|| io::Error::other("no URL can be made"))?;
        self.files.lock().insert(
            name.to_owned(),
            Some(StoredFile {
                ends,
                _bytes: bytes,
            }),
        );
        Ok(url)
    }

    fn url(&self, name: &str, shown_name: &str, length: u64, ends: SystemTime) -> Option<Url> {
        let text = serde_json::to_vec(&(name, seconds(ends), length, shown_name)).ok()?;
        let token = URL_SAFE_NO_PAD.encode(self.keys.seal(PURPOSE, &text)?);
        let mut url = self.base.get()?.clone();
        let path = url.path().trim_end_matches('/');
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let path = format!("{folder}{FILES_PATH}{token}");
        url.set_path(&path);
        Some(url)
    }

    /// Opens the file of a token; `None` if the token is forged or expired, or the file is not
    /// there.
    pub(crate) fn open(&self, token: &str) -> Option<FileDownload> {
        let sealed =
            (token.len() <= MAX_TOKEN_BYTES).then(|| URL_SAFE_NO_PAD.decode(token).ok())??;
        let text = self.keys.open(PURPOSE, &sealed).ok()?;
        let (own, ends, length, name): (String, u64, u64, String) =
            serde_json::from_slice(&text).ok()?;
        if seconds(SystemTime::now()) >= ends || !is_name(&own) {
            return None;
        }
        let file = self.folder.open_file(&own).ok()?;
        let metadata = file.metadata().ok()?;
        (metadata.is_file() && metadata.len() == length).then_some(FileDownload {
            file,
            length,
            name,
        })
    }

    /// Removes what has ended, now and once a minute.
    pub(crate) async fn sweep_regularly(self: Arc<Self>) {
        let mut interval = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            interval.tick().await;
            let store = Arc::clone(&self);
            let swept = tokio::task::spawn_blocking(move || store.sweep(SystemTime::now())).await;
            if let Ok(Err(error)) = swept {
                tracing::warn!("old files of `file_store` cannot be removed: {error}");
            }
        }
    }

    /// Removes files whose URLs have ended, and what other processes left long ago. Files with
    /// other names are not touched.
    fn sweep(&self, now: SystemTime) -> io::Result<()> {
        let ended: Vec<String> = self
            .files
            .lock()
            .extract_if(|_, file| file.as_ref().is_some_and(|file| file.ends <= now))
            .map(|(name, _)| name)
            .collect();
        ended.iter().try_for_each(|name| self.folder.remove(name))?;
        let is_left = |file: &FolderFile| {
            now.duration_since(file.changed)
                .is_ok_and(|age| age > MAX_LEFTOVER_AGE)
        };
        let (left, others): (Vec<_>, Vec<_>) = self.others()?.into_iter().partition(is_left);
        self.count_others(&others);
        left.iter()
            .try_for_each(|file| self.folder.remove(&file.name))
    }

    /// Returns the files that other processes have made: earlier ones, and other replicas.
    fn others(&self) -> io::Result<Vec<FolderFile>> {
        let mut files = self.folder.files()?;
        files.retain(|file| is_name(&file.name) && !self.files.lock().contains_key(&file.name));
        Ok(files)
    }

    fn count_others(&self, files: &[FolderFile]) {
        let bytes = files
            .iter()
            .map(|file| bytes_of_blocks(file.length))
            .fold(0, usize::saturating_add);
        let mut others = self.others.lock();
        *others = self.budget.taken(bytes);
    }
}

/// Returns the bytes that a file counts for: whole blocks, and at least one, so that the number of
/// files is limited as well.
pub(super) fn bytes_of_blocks(length: u64) -> usize {
    let length = usize::try_from(length).unwrap_or(usize::MAX);
    length
        .max(1)
        .checked_next_multiple_of(BLOCK_BYTES)
        .unwrap_or(length)
}

/// Returns true if a name is one of a file of a store.
fn is_name(name: &str) -> bool {
    name.len() == 2 * ID_BYTES
        && name
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs()
}

/// A folder that no other user can write to.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    dir: Dir,
}

/// A regular file of a folder.
pub(super) struct FolderFile {
    pub(super) name: String,
    /// Time of the last change.
    pub(super) changed: SystemTime,
    /// Number of bytes.
    pub(super) length: u64,
}

impl Folder {
    /// Opens the folder at `path`, and makes it if only its last part is missing.
    ///
    /// # Errors
    /// The fault, as the end of a sentence about the path.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let unusable = |error: io::Error| format!("cannot be used: {error}");
        // Only this user can enter it.
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        if let Err(error) = builder.create(path)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            let hint = match error.kind() {
                io::ErrorKind::NotFound if path.starts_with("~") => {
                    "; `~` is not replaced here: write the whole path"
                }
                io::ErrorKind::NotFound => "; make the folder around it first",
                _ => "",
            };
            return Err(format!("cannot be made: {error}{hint}"));
        }
        let path = path.canonicalize().map_err(unusable)?;
        let dir = Dir::open_ambient_dir(&path, ambient_authority()).map_err(unusable)?;
        check_writers(&dir.dir_metadata().map_err(unusable)?)?;
        Ok(Self { path, dir })
    }

    /// Returns the path of a file.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Makes a file of this user alone; its name must be free.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(self.dir.open_with(name, &options)?.into_std())
    }

    /// Gives a file a name that must be free.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{RenameFlags, renameat_with};
            use rustix::io::Errno;

            match renameat_with(&self.dir, from, &self.dir, to, RenameFlags::NOREPLACE) {
                // File systems of a network do not know the flag.
                Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
                renamed => return Ok(renamed?),
            }
        }
        self.dir.hard_link(from, &self.dir, to)?;
        self.remove(from)
    }

    /// Opens a file for reading. A link is none, and opening a pipe does not block.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        if !self.dir.symlink_metadata(name)?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        Ok(self.dir.open_with(name, &options)?.into_std())
    }

    /// Returns the regular files.
    pub(super) fn files(&self) -> io::Result<Vec<FolderFile>> {
        let mut files = Vec::new();
        for entry in self.dir.entries()? {
            let entry = entry?;
            // It may be gone meanwhile.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if let (Ok(name), true) = (entry.file_name().into_string(), metadata.is_file()) {
                files.push(FolderFile {
                    name,
                    changed: metadata.modified()?.into_std(),
                    length: metadata.len(),
                });
            }
        }
        Ok(files)
    }

    /// Removes a file, if it is there.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        match self.dir.remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Whoever can write to the folder could put links and other files in the place of ours.
#[cfg(unix)]
fn check_writers(metadata: &cap_std::fs::Metadata) -> Result<(), String> {
    use cap_std::fs::MetadataExt as _;

    #[cfg(target_os = "linux")]
    if metadata.uid() != 0 && metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(
            "belongs to another user; name one that belongs to the user of this server".into(),
        );
    }
    if metadata.mode() & 0o022 != 0 {
        return Err("can be written by other users; name a folder that does not exist yet, or one that is yours alone".into());
    }
    Ok(())
}

/// The access lists of Windows are not judged.
#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "other systems judge it")]
fn check_writers(_: &cap_std::fs::Metadata) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(folder: &std::path::Path, keys: &StateKeys) -> FileStore {
        let store = FileStore::new(Folder::open(folder).unwrap(), keys.clone(), 1 << 20).unwrap();
        store.serve_beside(Url::parse("https://mcp.example/prefix/mcp").unwrap());
        store
    }

    fn token(url: &Url) -> &str {
        url.path().strip_prefix("/prefix/files/").unwrap()
    }

    #[test]
    fn p28_only_a_token_of_the_keys_opens_its_file_until_it_ends() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("files");
        let (keys, others) = (StateKeys::random().unwrap(), StateKeys::random().unwrap());
        let (first, replica, foreign) = (
            store(&folder, &keys),
            store(&folder, &keys),
            store(&folder, &others),
        );
        let (mut file, name) = first.create().unwrap();
        io::Write::write_all(&mut file, b"hello").unwrap();
        let url = first.keep(&name, "a.txt", 5, first.budget.begin()).unwrap();
        for store in [&first, &replica] {
            let opened = store.open(token(&url)).unwrap();
            assert_eq!((opened.length, opened.name.as_str()), (5, "a.txt"));
        }
        assert!(foreign.open(token(&url)).is_none());
        let sealed_elsewhere =
            URL_SAFE_NO_PAD.encode(keys.seal("another purpose", &[0; 40]).unwrap());
        let empty = URL_SAFE_NO_PAD.encode(keys.seal(PURPOSE, b"").unwrap());
        for wrong in [
            "",
            "x",
            &name,
            token(&url).get(1..).unwrap(),
            &sealed_elsewhere,
            &empty,
            &"A".repeat(9_999),
        ] {
            assert!(first.open(wrong).is_none(), "{wrong}");
        }
        let ended = first
            .url(
                &name,
                "a.txt",
                5,
                SystemTime::now() - Duration::from_secs(1),
            )
            .unwrap();
        let other_size = first
            .url(&name, "a.txt", 6, SystemTime::now() + URL_LIFETIME)
            .unwrap();
        assert!(first.open(token(&ended)).is_none() && first.open(token(&other_size)).is_none());
    }

    #[test]
    fn what_has_ended_is_removed_and_nothing_of_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("files");
        let store = store(&folder, &StateKeys::random().unwrap());
        let (_, kept) = store.create().unwrap();
        let (_, written) = store.create().unwrap();
        let (left, other) = (
            "0123456789abcdef0123456789abcdef",
            "0123456789ABCDEF0123456789abcdef",
        );
        for name in [left, other, "notes.txt"] {
            std::fs::write(folder.join(name), "x").unwrap();
        }
        store.keep(&kept, "a", 0, store.budget.begin()).unwrap();
        let mut expected = vec![kept.as_str(), &written, left, other, "notes.txt"];
        let check = |after: Duration, expected: &mut Vec<&str>| {
            store.sweep(SystemTime::now() + after).unwrap();
            let entries = std::fs::read_dir(&folder).unwrap();
            let mut names: Vec<String> = entries
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            expected.sort_unstable();
            assert_eq!(names, *expected);
        };
        check(Duration::from_secs(595), &mut expected);
        expected.retain(|name| *name != kept);
        check(URL_LIFETIME, &mut expected);
        expected.retain(|name| *name != left);
        check(MAX_LEFTOVER_AGE + Duration::from_secs(5), &mut expected);
        assert!(
            store.files.lock().contains_key(&written),
            "what is being written stays"
        );
    }
}
