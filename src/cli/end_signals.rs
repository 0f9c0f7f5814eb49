//! The signals by which a process is asked to end.

/// Exit code of a process that a signal has interrupted: 128 + SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// SIGINT, which is Ctrl-C, and on Unix SIGTERM.
pub(crate) struct EndSignals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl EndSignals {
    /// Takes SIGTERM over from the system; SIGINT with the first [`Self::next`].
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    /// Waits for the next of them; true if it is SIGTERM.
    pub(crate) async fn next(&mut self) -> bool {
        #[cfg(unix)]
        return tokio::select! {
            _ = tokio::signal::ctrl_c() => false,
            _ = self.terminate.recv() => true,
        };
        #[cfg(not(unix))]
        return tokio::signal::ctrl_c().await.is_err();
    }
}
