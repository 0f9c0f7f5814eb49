//! The thread that writes the audit log: each line with one `write` to a file that is opened for
//! appending, and a new file if it was renamed. The operator sets the file.

use std::fs::{File, OpenOptions};
use std::io;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::line::RefusalCounts;

/// Interval at which the path is compared with the open file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Interval at which the log reports that lines are lost, or that the file cannot be opened again.
const LOSS_LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Task for the thread.
pub(super) enum WriterTask {
    /// A line, and who waits for it.
    Line(Vec<u8>, Option<oneshot::Sender<bool>>),
    Reopen,
    Flush(Sender<()>),
}

/// Time at which the log last reported that lines are lost.
static LOSS_TOLD: Mutex<Option<Instant>> = Mutex::new(None);
/// Time at which the log last reported that the file cannot be opened again.
static REOPEN_TOLD: Mutex<Option<Instant>> = Mutex::new(None);

/// Returns true if a loss was not reported within the last [`LOSS_LOG_INTERVAL`], and records that
/// it is reported now.
fn is_due(told: &Mutex<Option<Instant>>) -> bool {
    let mut told = told.lock();
    let is_due = told.is_none_or(|told| told.elapsed() >= LOSS_LOG_INTERVAL);
    if is_due {
        *told = Some(Instant::now());
    }
    is_due
}

/// Counts a lost line, and says so at most once in [`LOSS_LOG_INTERVAL`].
pub(super) fn count_lost(on_loss: fn(), why: &str) {
    on_loss();
    if is_due(&LOSS_TOLD) {
        tracing::error!(
            "a line of the audit log is lost: {why}; openapi_mcp_audit_lost_total counts them"
        );
    }
}

/// Output for lines.
pub(super) enum AuditOutput {
    File {
        path: PathBuf,
        file: File,
        /// The last write was cut short: the next line begins on a line of its own.
        is_torn: bool,
    },
    Stdout,
}

/// Returns true if the last line of a file has no end, because a write was cut short.
fn ends_within_line(path: &Path) -> bool {
    let last_byte = || -> io::Result<u8> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        Ok(byte[0])
    };
    last_byte().is_ok_and(|byte| byte != b'\n')
}

impl AuditOutput {
    pub(super) fn open(target: &AuditTarget) -> Result<Self, String> {
        match target {
            AuditTarget::Stdout => Ok(Self::Stdout),
            AuditTarget::File(path) => Ok(Self::File {
                path: path.clone(),
                file: open_file(path)
                    .map_err(|error| format!("`{}` cannot be opened: {error}", path.display()))?,
                is_torn: ends_within_line(path),
            }),
        }
    }

    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(line)?;
                stdout.flush()
            }
            Self::File { file, is_torn, .. } => {
                let mut whole = Vec::new();
                let line = if *is_torn {
                    whole.push(b'\n');
                    whole.extend_from_slice(line);
                    &whole
                } else {
                    line
                };
                let written = loop {
                    match file.write(line) {
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        other => break other?,
                    }
                };
                *is_torn = if written == 0 {
                    *is_torn
                } else {
                    written < line.len()
                };
                if written < line.len() {
                    return Err(io::Error::new(
                        io::ErrorKind::WriteZero,
                        "the line was cut short",
                    ));
                }
                Ok(())
            }
        }
    }

    /// Opens the file anew; if that fails, lines still go to the old one.
    fn reopen(&mut self) {
        if let Self::File {
            path,
            file,
            is_torn,
        } = self
        {
            match open_file(path) {
                Ok(fresh) => (*file, *is_torn) = (fresh, ends_within_line(path)),
                Err(error) if is_due(&REOPEN_TOLD) => tracing::error!(
                    "the audit log `{}` cannot be opened again ({error}); lines still go to the old file",
                    path.display()
                ),
                Err(_) => {}
            }
        }
    }

    /// Returns true if the path leads to another file than the open one, or to none.
    fn was_moved(&self) -> bool {
        match self {
            Self::Stdout => false,
            Self::File { path, file, .. } => !is_same_file(path, file),
        }
    }
}

#[cfg(unix)]
fn is_same_file(path: &Path, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    match (std::fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(open)) => (there.dev(), there.ino()) == (open.dev(), open.ino()),
        (Err(error), _) => error.kind() != io::ErrorKind::NotFound,
        _ => true,
    }
}

#[cfg(not(unix))]
fn is_same_file(path: &Path, _file: &File) -> bool {
    path.exists()
}

/// A plain file, for appending; a new one can be read by its owner alone.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // A named pipe would be waited for.
        options.mode(0o600).custom_flags(libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a plain file",
        ));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        if metadata.mode() & 0o077 != 0 {
            tracing::warn!(
                "other users of this machine can open the audit log `{}`; `chmod 600` ends that",
                path.display()
            );
        }
    }
    Ok(file)
}

/// Writes lines until there is no sender any more; the body of the thread.
pub(super) fn write_lines(
    mut output: AuditOutput,
    messages: &Receiver<WriterTask>,
    refusals: &RefusalCounts,
    on_loss: fn(),
) {
    let mut checked = Instant::now();
    let write = |output: &mut AuditOutput, line: &[u8]| {
        let written = output.write(line);
        if let Err(error) = &written {
            count_lost(on_loss, &error.to_string());
        }
        written.is_ok()
    };
    loop {
        let message = messages.recv_timeout(CHECK_INTERVAL);
        if checked.elapsed() >= CHECK_INTERVAL {
            checked = Instant::now();
            if output.was_moved() {
                output.reopen();
            }
            for line in refusals.due() {
                write(&mut output, &line);
            }
        }
        match message {
            Ok(WriterTask::Line(line, waiting)) => {
                let is_written = write(&mut output, &line);
                if let Some(waiting) = waiting {
                    let _ = waiting.send(is_written);
                }
            }
            Ok(WriterTask::Reopen) => output.reopen(),
            Ok(WriterTask::Flush(done)) => {
                for line in refusals.rest() {
                    write(&mut output, &line);
                }
                let _ = done.send(());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Destination of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuditTarget {
    File(PathBuf),
    Stdout,
}

/// The operator's settings for the audit log.
#[derive(Debug, Clone)]
pub(crate) struct AuditOptions {
    pub(crate) target: AuditTarget,
    /// The key of hashes; without one, a random one of this process.
    pub(crate) key: Option<secrecy::SecretString>,
    /// True if a call waits for its line, and is refused without it.
    pub(crate) required: bool,
}
