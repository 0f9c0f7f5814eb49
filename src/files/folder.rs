//! A folder in which files of replies are made. It is opened once: if its path leads elsewhere
//! later, files still go to the folder that was checked.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

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
        if let Err(error) = make_private(path)
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

    /// Removes a file.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        self.dir.remove_file(name)
    }
}

/// Makes a folder that only this user can enter.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
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
