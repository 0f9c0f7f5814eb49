//! File descriptors: how many this process may have, and what is left of them.

use std::io;

/// EMFILE and ENFILE: the process or the system has no file descriptor left.
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

/// Number of descriptors that this process needs for itself: standard streams, the event loop,
/// files that are read, and the pipes of filters.
#[cfg(unix)]
const RESERVED_DESCRIPTORS: u64 = 32;

/// Raises the soft limit on descriptors to the hard one: 1024 is a usual soft limit, and a busy
/// server needs more.
pub(crate) fn raise_descriptor_limit() {
    #[cfg(unix)]
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!("this process may have {limit} file descriptors"),
        Err(error) => tracing::warn!("the limit on file descriptors cannot be raised: {error}"),
    }
}

/// Returns the number of connections of clients that may be open at a time, which leaves as many
/// descriptors for connections to APIs.
pub(crate) fn client_connections(configured: usize) -> usize {
    #[cfg(unix)]
    if let Ok((limit, _)) = rlimit::getrlimit(rlimit::Resource::NOFILE) {
        let share = usize::try_from(limit.saturating_sub(RESERVED_DESCRIPTORS) / 2)
            .unwrap_or(usize::MAX)
            .max(1);
        if share < configured {
            tracing::warn!(
                "this process may have {limit} file descriptors: it takes {share} connections of clients at a time, not {configured}; a higher `ulimit -n` allows more"
            );
            return share;
        }
    }
    configured
}
