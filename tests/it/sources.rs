//! The files of the project, for the tests that read them.

use std::path::{Path, PathBuf};

use crate::support::project;

/// All Rust files of a folder of the project and of the folders in it.
pub fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect_rust_files(&project(folder), &mut found);
    found
}

fn collect_rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            collect_rust_files(&entry.path(), found);
        } else if entry
            .path()
            .extension()
            .is_some_and(|extension| extension == "rs")
        {
            found.push(entry.path());
        }
    }
}
