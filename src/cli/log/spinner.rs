//! A spinner on standard error for work that takes longer than a second. It is shown in terminals
//! only.

use std::io::{IsTerminal as _, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::ProgressBar;
use parking_lot::Mutex;

use crate::config::variables::allows_decoration;

/// Time after which a spinner is shown.
const DELAY: Duration = Duration::from_secs(1);
const FRAME_INTERVAL: Duration = Duration::from_millis(100);

/// The spinner that is shown now. A line of the log is written around it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Work that a spinner may be shown for, until this value is dropped.
pub(crate) struct Spinner {
    /// Dropping it ends the thread.
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Spinner {
    /// `message` says what is being done, such as "reading the document".
    pub(crate) fn start(message: &'static str) -> Self {
        if !allows_decoration(std::io::stderr().is_terminal()) {
            return Self { running: None };
        }
        let (sender, ended) = channel::<()>();
        let show = move || {
            if ended.recv_timeout(DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = ProgressBar::new_spinner().with_message(message);
            bar.enable_steady_tick(FRAME_INTERVAL);
            *SHOWN.lock() = Some(bar);
            // The other end is only dropped.
            let _ = ended.recv();
            if let Some(bar) = SHOWN.lock().take() {
                bar.finish_and_clear();
            }
        };
        let thread = std::thread::Builder::new()
            .name("spinner".into())
            .spawn(show);
        Self {
            running: thread.ok().map(|thread| (sender, thread)),
        }
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.running.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// Standard error for lines of the log: the spinner is taken away while a line is written.
pub(crate) struct AroundSpinner;

impl Write for AroundSpinner {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let write = || std::io::stderr().write(bytes);
        match &*SHOWN.lock() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        std::io::stderr().flush()
    }
}
