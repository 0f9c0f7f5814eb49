//! A folder in which files of replies are made. It is opened once: if its path leads elsewhere
//! later, files still go to the folder that was checked. That holds on Linux; other systems open
//! each file by its path.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
#[cfg(target_os = "linux")]
use std::time::Duration;
use std::time::SystemTime;

/// A folder that no other user can write to.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    #[cfg(target_os = "linux")]
    handle: std::os::fd::OwnedFd,
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
        let folder = Self::open_existing(path).map_err(unusable)?;
        folder.check_writers()?;
        Ok(folder)
    }

    /// Returns the path of a file.
    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

#[cfg(target_os = "linux")]
impl Folder {
    fn open_existing(path: PathBuf) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags, open};

        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = open(&path, flags, Mode::empty())?;
        Ok(Self { path, handle })
    }

    /// Whoever can write to the folder could put links and other files in the place of ours.
    fn check_writers(&self) -> Result<(), String> {
        let status =
            rustix::fs::fstat(&self.handle).map_err(|error| format!("cannot be used: {error}"))?;
        refuse_writers(
            status.st_mode,
            status.st_uid == 0 || status.st_uid == rustix::process::geteuid().as_raw(),
        )
    }

    /// Makes a file of this user alone; its name must be free.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};

        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?.into())
    }

    /// Gives a file a name that must be free.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        use rustix::fs::{AtFlags, RenameFlags, linkat, renameat_with};
        use rustix::io::Errno;

        match renameat_with(&self.handle, from, &self.handle, to, RenameFlags::NOREPLACE) {
            // File systems of a network do not know the flag.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                linkat(&self.handle, from, &self.handle, to, AtFlags::empty())?;
                self.remove(from)
            }
            renamed => Ok(renamed?),
        }
    }

    /// Opens a file for reading.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};

        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(openat(&self.handle, name, flags, Mode::empty())?.into())
    }

    /// Returns the regular files.
    pub(super) fn files(&self) -> io::Result<Vec<FolderFile>> {
        use rustix::fs::{AtFlags, Dir, FileType, statat};

        let mut files = Vec::new();
        for entry in Dir::read_from(&self.handle)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else {
                continue;
            };
            let Ok(status) = statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if FileType::from_raw_mode(status.st_mode).is_file() {
                let seconds = u64::try_from(status.st_mtime).unwrap_or_default();
                files.push(FolderFile {
                    name: name.to_owned(),
                    changed: SystemTime::UNIX_EPOCH + Duration::from_secs(seconds),
                    length: u64::try_from(status.st_size).unwrap_or_default(),
                });
            }
        }
        Ok(files)
    }

    /// Removes a file.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.handle,
            name,
            rustix::fs::AtFlags::empty(),
        )?)
    }
}

#[cfg(not(target_os = "linux"))]
impl Folder {
    fn open_existing(path: PathBuf) -> io::Result<Self> {
        if !path.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path })
    }

    #[cfg(unix)]
    fn check_writers(&self) -> Result<(), String> {
        use std::os::unix::fs::MetadataExt as _;

        let metadata = self
            .path
            .metadata()
            .map_err(|error| format!("cannot be used: {error}"))?;
        refuse_writers(metadata.mode(), true)
    }

    /// The access lists of Windows are not judged.
    #[cfg(not(unix))]
    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "other systems judge it"
    )]
    fn check_writers(&self) -> Result<(), String> {
        Ok(())
    }

    /// Makes a file of this user alone; its name must be free. A link under that name is not
    /// followed.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(self.path_of(name))
    }

    /// Gives a file a name that must be free.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::hard_link(self.path_of(from), self.path_of(to))?;
        self.remove(from)
    }

    /// Opens a file for reading.
    pub(super) fn open_file(&self, name: &str) -> io::Result<File> {
        let path = self.path_of(name);
        if !path.symlink_metadata()?.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        File::open(path)
    }

    /// Returns the regular files.
    pub(super) fn files(&self) -> io::Result<Vec<FolderFile>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if let (Ok(name), true) = (entry.file_name().into_string(), metadata.is_file()) {
                files.push(FolderFile {
                    name,
                    changed: metadata.modified()?,
                    length: metadata.len(),
                });
            }
        }
        Ok(files)
    }

    /// Removes a file.
    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path_of(name))
    }
}

/// Makes a folder that only this user can enter.
fn make_private(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(unix)]
fn refuse_writers(mode: u32, is_own: bool) -> Result<(), String> {
    if !is_own {
        return Err(
            "belongs to another user; name one that belongs to the user of this server".into(),
        );
    }
    if mode & 0o022 != 0 {
        return Err("can be written by other users; name a folder that does not exist yet, or one that is yours alone".into());
    }
    Ok(())
}
