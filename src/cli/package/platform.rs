//! The systems that a bundle can be made for.

use clap::ValueEnum;

/// The systems that a manifest knows, by their names there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::Display)]
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
