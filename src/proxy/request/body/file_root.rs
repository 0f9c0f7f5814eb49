//! The folder of `--allow-file-args`: files may be sent from it, and from nowhere else.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};

const OUTSIDE: &str = "names no file in the folder that this server sends files from";
const NOT_A_FILE: &str = "names a folder or something else that is not a regular file";
const UNREADABLE: &str = "names a file that this server cannot read";

/// The largest file that is sent, in bytes.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// A folder whose files may be sent; symbolic links that lead out of it are not followed, and those
/// with an absolute path lead out. It is opened once.
#[derive(Debug, Clone)]
pub struct FileRoot {
    root: PathBuf,
    dir: Arc<Dir>,
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
        let dir = Arc::new(Dir::open_ambient_dir(&root, ambient_authority())?);
        Ok(Self { root, dir })
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

    /// Opens a path below the folder. Opening a pipe does not block.
    fn open_below(&self, own: &Path) -> Result<File, &'static str> {
        let own = if own.as_os_str().is_empty() {
            Path::new(".")
        } else {
            own
        };
        let mut options = OpenOptions::new();
        options.read(true);
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
        let file = self.dir.open_with(own, &options);
        // A path that leads out is an error of this program, without a code of the system.
        let file = file.map_err(|error| match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::PermissionDenied, Some(_)) => UNREADABLE,
            _ => OUTSIDE,
        })?;
        Ok(file.into_std())
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
            for path in ["outside", "up/secret", "device", "up/in/a.txt"] {
                assert!(folder.open(path).is_err(), "{path}");
            }
            // Whether these are there must not matter.
            for there in ["../in-not/../in/a.txt", "../none/../in/a.txt"] {
                assert_eq!(folder.open(there).unwrap_err(), OUTSIDE, "{there}");
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
    #[cfg(unix)]
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
        assert_eq!(folder.open("pipe").unwrap_err(), NOT_A_FILE);
    }
}
