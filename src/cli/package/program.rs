//! The program in a bundle.

use std::path::Path;

use crate::cli::operating_system::OperatingSystem;
use crate::config::variables;
use crate::error::Failure;

/// The program that a bundle holds.
pub(super) struct BundledProgram {
    pub(super) bytes: Vec<u8>,
    pub(super) platform: OperatingSystem,
    /// The end of the bundle's name: the system, and the processor if it is known.
    pub(super) suffix: String,
}

impl BundledProgram {
    /// Reads the program at a path, which is for that system, else the one that runs.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(given: Option<(&Path, OperatingSystem)>) -> Result<Self, Failure> {
        let (path, platform, suffix) = if let Some((path, platform)) = given {
            (path.to_owned(), platform, platform.to_string())
        } else {
            let path = variables::running_program().map_err(Failure::setting)?;
            let system = OperatingSystem::OWN;
            (path, system, format!("{system}-{OWN_PROCESSOR}"))
        };
        let bytes = std::fs::read(&path).map_err(|error| {
            Failure::Io(
                format!("the binary `{}` cannot be read", path.display()),
                error,
            )
        })?;
        Ok(Self {
            bytes,
            platform,
            suffix,
        })
    }
}

/// The processor of this program, as Node.js names it.
const OWN_PROCESSOR: &str = if cfg!(target_arch = "x86_64") {
    "x64"
} else if cfg!(target_arch = "aarch64") {
    "arm64"
} else {
    "other"
};
