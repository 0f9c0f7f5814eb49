//! Replies that become files: where they go, under which names, and what is left of them if
//! something fails.
//!
//! A file is temporary until the result of its call is made. Dropping it removes it.

mod delivery;
mod file_name;
mod file_store;
mod file_writer;
mod folder;

pub(crate) use self::delivery::{FileDelivery, FileDestination, FilePlan};
pub(crate) use self::file_name::{is_in_names, safe_name};
pub(crate) use self::file_store::{FILES_PATH, FileDownload, FileStore, URL_LIFETIME};
pub(crate) use self::file_writer::{DeliveredFile, FileWriter, ReceivedFile};
pub(crate) use self::folder::Folder;
