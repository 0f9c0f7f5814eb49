//! The folder of `--allow-file-args`: files may be sent from it, and from nowhere else.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

const OUTSIDE: &str = "names no file in the folder that this server sends files from";
const NOT_A_FILE: &str = "names a folder or something else that is not a regular file";
const UNREADABLE: &str = "names a file that this server cannot read";

/// The largest file that is sent, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// A folder whose files may be sent; symbolic links that lead out of it are not followed.
#[derive(Debug, Clone)]
pub struct FileRoot {
    root: PathBuf,
}

/// A file that may be sent.
#[derive(Debug)]
pub struct FoundFile {
    /// Open.
    pub file: File,
    /// Its size in bytes.
    pub length: u64,
    /// The last part of the path.
    pub name: Option<String>,
}

impl FileRoot {
    /// The folder at `path`.
    ///
    /// # Errors
    /// An error if it is not a folder, or cannot be read.
    pub fn new(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root })
    }

    /// Returns the path within the folder, without `.` and `..`; `None` if any part of the path
    /// leads out of the folder.
    fn own(&self, path: &str) -> Option<PathBuf> {
        let path = Path::new(path);
        let path = if path.is_absolute() {
            path.strip_prefix(&self.root).ok()?
        } else {
            path
        };
        let mut own = PathBuf::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => own.push(name),
                Component::CurDir => {}
                Component::ParentDir if own.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
            }
        }
        Some(own)
    }

    /// Opens a path below the folder. The opened file itself is checked, because the path may be
    /// replaced by a link at any time. Opening a pipe does not block.
    #[cfg(target_os = "linux")]
    fn open_below(&self, own: &Path) -> Result<File, &'static str> {
        use std::os::fd::AsRawFd as _;
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, open, openat2};
        use rustix::io::Errno;

        let folder_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = open(&self.root, folder_flags, Mode::empty()).map_err(|_| OUTSIDE)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let own = if own.as_os_str().is_empty() {
            Path::new(".")
        } else {
            own
        };
        match openat2(&folder, own, flags, Mode::empty(), ResolveFlags::BENEATH) {
            Ok(file) => return Ok(file.into()),
            Err(Errno::ACCESS) => return Err(UNREADABLE),
            // A link that leads out, and perhaps back; an old kernel; a sandbox that does not know
            // the call.
            Err(Errno::XDEV | Errno::NOSYS | Errno::PERM | Errno::AGAIN) => {}
            Err(_) => return Err(OUTSIDE),
        }
        // Opened as a path only, not for reading, until its location is known.
        let found = rustix::fs::openat(
            CWD,
            self.root.join(own),
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|_| OUTSIDE)?;
        let found = File::from(found);
        let itself = PathBuf::from(format!("/proc/self/fd/{}", found.as_raw_fd()));
        let place = std::fs::read_link(&itself).map_err(|_| OUTSIDE)?;
        if !place.starts_with(&self.root) {
            return Err(OUTSIDE);
        }
        if !found.metadata().map_err(|_| OUTSIDE)?.is_file() {
            return Err(NOT_A_FILE);
        }
        let mut options = File::options();
        options
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY);
        options.open(&itself).map_err(|_| UNREADABLE)
    }

    /// Opens a path below the folder, and compares its location before and after.
    #[cfg(not(target_os = "linux"))]
    fn open_below(&self, own: &Path) -> Result<File, &'static str> {
        let resolved = self.root.join(own).canonicalize().map_err(|_| OUTSIDE)?;
        if !resolved.starts_with(&self.root) {
            return Err(OUTSIDE);
        }
        if !resolved.metadata().map_err(|_| OUTSIDE)?.is_file() {
            return Err(NOT_A_FILE);
        }
        let mut options = File::options();
        options.read(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
        let file = options.open(&resolved).map_err(|_| UNREADABLE)?;
        let is_unchanged = resolved.canonicalize().is_ok_and(|again| again == resolved);
        if is_unchanged { Ok(file) } else { Err(OUTSIDE) }
    }

    /// Opens the file at `path`, which is relative to the folder, or whole and below it.
    ///
    /// # Errors
    /// A sentence without the names of folders. It does not reveal which files exist outside of the
    /// folder.
    pub fn open(&self, path: &str) -> Result<FoundFile, &'static str> {
        // The text of the path is checked first: the system's answer about a path that leads out
        // and back would reveal what exists there.
        let own = self.own(path).ok_or(OUTSIDE)?;
        let file = self.open_below(&own)?;
        let metadata = file.metadata().map_err(|_| OUTSIDE)?;
        if !metadata.is_file() {
            return Err(NOT_A_FILE);
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err("names a file of more than 4 GiB, which this server does not send");
        }
        let name = Path::new(path)
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Ok(FoundFile {
            file,
            length: metadata.len(),
            name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_the_folder_is_opened() {
        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("in");
        std::fs::create_dir_all(root.join("deep")).unwrap();
        std::fs::create_dir_all(outside.path().join("in-not")).unwrap();
        for file in ["in/a.txt", "in/deep/b.txt", "secret", "in-not/c"] {
            std::fs::write(outside.path().join(file), "x").unwrap();
        }
        let folder = FileRoot::new(&root).unwrap();
        let whole = root
            .canonicalize()
            .unwrap()
            .join("a.txt")
            .display()
            .to_string();
        for path in [
            "a.txt",
            "deep/b.txt",
            "deep/../a.txt",
            "./a.txt",
            whole.as_str(),
        ] {
            assert_eq!(folder.open(path).unwrap().length, 1, "{path}");
        }
        let elsewhere = outside.path().join("secret").display().to_string();
        for path in [
            "../secret",
            "deep/../../secret",
            "../in-not/c",
            elsewhere.as_str(),
            "none",
            "a\0",
            "",
            "deep",
            "/etc/passwd",
        ] {
            assert!(folder.open(path).is_err(), "{path}");
        }
        #[cfg(unix)]
        {
            let link =
                |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
            link("deep/b.txt", "inside");
            link("../secret", "outside");
            link("..", "up");
            link("/dev/zero", "device");
            assert!(folder.open("inside").is_ok());
            for path in ["outside", "up/secret", "device"] {
                assert!(folder.open(path).is_err(), "{path}");
            }
            assert!(folder.open("up/in/a.txt").is_ok());
            // Whether these are there must not matter.
            for there in [
                "../in-not/../in/a.txt",
                "up/in-not/../in/a.txt",
                "../none/../in/a.txt",
                "up/none/../in/a.txt",
            ] {
                let found = folder.open(there).is_ok();
                assert_eq!(found, there.starts_with("up"), "{there}");
            }
            let back = outside
                .path()
                .canonicalize()
                .unwrap()
                .join("in-not/../in/a.txt")
                .display()
                .to_string();
            assert!(folder.open(&back).is_err());
        }
        assert!(FileRoot::new(&root.join("a.txt")).is_err());
        assert!(FileRoot::new(&root.join("none")).is_err());
    }
    /// Another user who can write into the folder swaps a file for a link that leads out, and for a
    /// pipe.
    #[cfg(target_os = "linux")]
    #[test]
    fn p51_a_file_that_is_swapped_meanwhile_is_never_one_from_outside() {
        use std::io::Read as _;
        use std::os::unix::fs::symlink;
        use std::sync::atomic::{AtomicBool, Ordering};
        use std::time::{Duration, Instant};

        let outside = tempfile::tempdir().unwrap();
        let root = outside.path().join("in");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::create_dir_all(outside.path().join("other")).unwrap();
        std::fs::write(root.join("sub/a.txt"), "inside").unwrap();
        std::fs::write(outside.path().join("other/a.txt"), "secret").unwrap();
        let folder = FileRoot::new(&root).unwrap();
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (kept, swapped) = (root.join("kept"), root.join("sub"));
                while !is_done.load(Ordering::Relaxed) {
                    std::fs::rename(&swapped, &kept).unwrap();
                    symlink("../other", &swapped).unwrap();
                    std::fs::remove_file(&swapped).unwrap();
                    std::fs::rename(&kept, &swapped).unwrap();
                }
            });
            let started = Instant::now();
            let (mut read, mut tries) = (0, 0);
            while started.elapsed() < Duration::from_secs(2) {
                tries += 1;
                if let Ok(mut found) = folder.open("sub/a.txt") {
                    let mut text = String::new();
                    found.file.read_to_string(&mut text).unwrap();
                    assert_eq!(text, "inside", "after {tries} tries");
                    read += 1;
                }
            }
            is_done.store(true, Ordering::Relaxed);
            assert!(read > 0, "{tries}");
        });
        let pipe = root.join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        symlink("../in/pipe", root.join("way round")).unwrap();
        for path in ["pipe", "way round"] {
            assert_eq!(folder.open(path).unwrap_err(), NOT_A_FILE, "{path}");
        }
        symlink(
            root.canonicalize().unwrap().join("sub/a.txt"),
            root.join("whole"),
        )
        .unwrap();
        assert!(
            folder.open("whole").is_ok(),
            "a link that stays inside may be absolute"
        );
    }
}
