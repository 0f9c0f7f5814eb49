//! Reports that may not fill the log.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Lets something be reported once a minute.
#[derive(Default)]
pub(crate) struct OncePerMinute(Mutex<Option<Instant>>);

impl OncePerMinute {
    /// Nothing was reported yet.
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns true if nothing was reported within the last minute, and records that it is reported
    /// now.
    pub(crate) fn is_due(&self) -> bool {
        const INTERVAL: Duration = Duration::from_mins(1);
        let mut last = self.0.lock();
        let is_due = last.is_none_or(|last| last.elapsed() >= INTERVAL);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}
