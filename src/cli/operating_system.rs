//! The operating systems that this program knows: where the files of clients are, and what a bundle is
//! made for.

use clap::ValueEnum;

/// An operating system, by the name that manifests of bundles have for it.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum OperatingSystem {
    Darwin,
    Linux,
    Win32,
}

impl OperatingSystem {
    /// The one that this program was built for.
    pub(crate) const OWN: Self = if cfg!(windows) {
        Self::Win32
    } else if cfg!(target_os = "macos") {
        Self::Darwin
    } else {
        Self::Linux
    };

    /// The name of the file of this program.
    pub(crate) fn binary(self) -> &'static str {
        match self {
            Self::Win32 => "openapi-mcp.exe",
            Self::Darwin | Self::Linux => "openapi-mcp",
        }
    }
}
