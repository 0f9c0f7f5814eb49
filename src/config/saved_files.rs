//! Settings of replies that become files.

use std::sync::Arc;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::keys::path::ConfigPath;
use crate::proxy::files::{FileDelivery, FileDestination, Folder};

/// Settings of replies that become files.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct SavedFileSettings {
    /// Over stdio, save replies that are not text and too large for a result to new files in this folder; no other user may write to it
    #[arg(long, env = "OPENAPI_MCP_SAVE_FILES", value_name = "DIR")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub save_files: Option<ConfigPath>,

    /// The maximum size of a reply that goes to a file, in bytes, instead of --max-response-bytes [default: 1073741824]
    #[arg(long, env = "OPENAPI_MCP_MAX_FILE_BYTES", value_name = "BYTES")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_file_bytes: Option<u64>,
}

/// Resolves the destination of files; what is wrong with the settings is pushed to `problems`.
pub(crate) fn resolve_delivery(settings: &SavedFileSettings, is_stdio: bool, problems: &mut Vec<String>) -> FileDelivery {
    let mut delivery = FileDelivery::default();
    match settings.max_file_bytes {
        Some(0) => problems.push("--max-file-bytes must be more than 0".into()),
        Some(_) if settings.save_files.is_none() => {
            problems.push("--max-file-bytes needs --save-files DIR".into());
        }
        Some(bytes) => delivery.max_bytes = bytes,
        None => {}
    }
    if let Some(path) = &settings.save_files {
        if !is_stdio {
            problems.push("--save-files needs --transport stdio: clients over HTTP cannot open files of this machine".into());
        }
        match Folder::open(path) {
            Ok(folder) => delivery.destination = Some(FileDestination::Folder(Arc::new(folder))),
            Err(why) => problems.push(format!("--save-files: the folder `{}` {why}", path.display())),
        }
    }
    delivery
}
