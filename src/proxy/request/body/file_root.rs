//! The folder that files may be sent from, where the operator names one.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Larger files are not sent.
const MAX_FILE_BYTES: u64 = 4 << 30;

/// A folder, and nothing outside it, wherever symbolic links lead.
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
    /// Where it is no folder, or cannot be read.
    pub fn new(path: &Path) -> io::Result<Self> {
        let root = path.canonicalize()?;
        if !root.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { root })
    }

    /// The path within the folder, without dots; `None` where it leads out, be it for a part of the way.
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

    /// Opens the file at `path`, which is relative to the folder, or whole and below it.
    ///
    /// # Errors
    /// A sentence without the names of folders. Whether there is anything outside the folder is not told.
    pub fn open(&self, path: &str) -> Result<FoundFile, &'static str> {
        const NOWHERE: &str = "names no file in the folder that this server sends files from";
        // By its letters first: asking the system about a path that leads out and back tells what is there.
        let own = self.own(path).ok_or(NOWHERE)?;
        let resolved = self.root.join(own).canonicalize().map_err(|_| NOWHERE)?;
        if !resolved.starts_with(&self.root) {
            return Err(NOWHERE);
        }
        // Opening a pipe would wait for somebody who writes into it.
        if !resolved.metadata().map_err(|_| NOWHERE)?.is_file() {
            return Err("names a folder or something else that is no plain file");
        }
        let file = File::open(&resolved).map_err(|_| "names a file that this server cannot read")?;
        let metadata = file.metadata().map_err(|_| NOWHERE)?;
        // What was put in its place in between.
        let unchanged = resolved.canonicalize().is_ok_and(|again| again == resolved);
        if !metadata.is_file() || !unchanged {
            return Err(NOWHERE);
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err("names a file of more than 4 GiB, which this server does not send");
        }
        let name = Path::new(path).file_name().map(|name| name.to_string_lossy().into_owned());
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
        let whole = root.canonicalize().unwrap().join("a.txt").display().to_string();
        for path in ["a.txt", "deep/b.txt", "deep/../a.txt", "./a.txt", whole.as_str()] {
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
            let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, root.join(name)).unwrap();
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
}
