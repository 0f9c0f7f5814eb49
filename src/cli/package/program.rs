//! The program in a bundle, and the systems that a bundle can be made for.

use std::path::Path;

use clap::ValueEnum;

use crate::config::variables;
use crate::error::Failure;

/// The program that a bundle holds.
pub(super) struct BundledProgram {
    pub(super) bytes: Vec<u8>,
    pub(super) platform: BundlePlatform,
    /// The end of the bundle's name: the system, and the processor if it is known.
    pub(super) suffix: String,
}

impl BundledProgram {
    /// Reads the program at a path, which is for that system, else the one that runs.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(given: Option<(&Path, BundlePlatform)>) -> Result<Self, Failure> {
        let (path, platform, suffix) = if let Some((path, platform)) = given {
            let system = platform.to_string();
            (path.to_owned(), platform, system)
        } else {
            let path = variables::running_program().map_err(Failure::setting)?;
            let system = BundlePlatform::OWN;
            let suffix = format!("{system}-{OWN_PROCESSOR}");
            (path, BundlePlatform::OWN, suffix)
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

/// The systems that a manifest knows, by their names there.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum BundlePlatform {
    Darwin,
    Linux,
    Win32,
}

impl BundlePlatform {
    /// The system of this program.
    pub(super) const OWN: Self = if cfg!(windows) {
        Self::Win32
    } else if cfg!(target_os = "macos") {
        Self::Darwin
    } else {
        Self::Linux
    };

    /// The name of the program inside.
    pub(super) fn binary(self) -> &'static str {
        match self {
            Self::Win32 => "openapi-mcp.exe",
            Self::Darwin | Self::Linux => "openapi-mcp",
        }
    }
}
