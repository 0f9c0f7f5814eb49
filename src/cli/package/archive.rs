//! A zip archive whose bytes depend on nothing but its content: fixed times, fixed order, Unix
//! modes on every system.

use std::io::{Cursor, Write as _};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

/// A file of an archive.
pub(super) struct ArchivedFile<'a> {
    pub(super) name: String,
    pub(super) bytes: &'a [u8],
    pub(super) is_executable: bool,
}

/// The archive's bytes.
///
/// # Errors
/// A sentence: the archive would be too large for its format.
pub(super) fn write_archive(files: &[ArchivedFile<'_>]) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the archive cannot be written: {error}");
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for file in files {
        let mode = if file.is_executable { 0o755 } else { 0o644 };
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        writer
            .start_file(file.name.as_str(), options)
            .map_err(|error| failed(&error))?;
        writer
            .write_all(file.bytes)
            .map_err(|error| failed(&error))?;
    }
    writer
        .finish()
        .map(Cursor::into_inner)
        .map_err(|error| failed(&error))
}
