//! Replies that become files: where they go, under which names, and what is left of them if
//! something fails.
//!
//! A file is temporary until the result of its call is made. Dropping it removes it.

mod file_store;
pub(crate) mod reply_file;

pub(crate) use self::file_store::{FILES_PATH, FileDownload, FileStore, Folder, URL_LIFETIME};
pub(crate) use self::reply_file::{
    DeliveredFile, FileDelivery, FileDestination, FilePlan, FileWriter, ReceivedFile, is_in_names,
    safe_name,
};
