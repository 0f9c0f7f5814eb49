//! File descriptors: how many this process may have, and what is left of them.

use std::io;

/// EMFILE and ENFILE: the process or the system has no file descriptor left.
#[must_use]
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_out = matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE));
    #[cfg(not(unix))]
    let is_out = {
        let _ = error;
        false
    };
    is_out
}
