//! Lines of the audit log, and the thread that writes them: one JSON object each, at most 4 KiB, with
//! one `write` to a file that is opened for appending, so that several processes can append to one
//! file; and to a new file if it was renamed. Requests that are refused before their body is read
//! have one line a minute for each reason, with their number.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::oneshot;

use crate::observe::once_per_minute::OncePerMinute;
use crate::text;

/// Interval at which the path is compared with the open file.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Task for the thread.
pub(super) enum WriterTask {
    /// A line, and who waits for it.
    Line(Vec<u8>, Option<oneshot::Sender<bool>>),
    Reopen,
    Flush(Sender<()>),
}

/// Counts a lost line, and says so once a minute.
pub(super) fn count_lost(on_loss: fn(), why: &str) {
    static TOLD: OncePerMinute = OncePerMinute::new();
    on_loss();
    if TOLD.is_due() {
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
                let is_cut = written < line.len();
                if written > 0 {
                    *is_torn = is_cut;
                }
                if is_cut {
                    return Err(io::Error::other("the line was cut short"));
                }
                Ok(())
            }
        }
    }

    /// Opens the file anew; if that fails, lines still go to the old one.
    fn reopen(&mut self) {
        static TOLD: OncePerMinute = OncePerMinute::new();
        if let Self::File {
            path,
            file,
            is_torn,
        } = self
        {
            match open_file(path) {
                Ok(fresh) => (*file, *is_torn) = (fresh, ends_within_line(path)),
                Err(error) if TOLD.is_due() => tracing::error!(
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
        return Err(io::Error::other("it is not a plain file"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
        tracing::warn!(
            "other users of this machine can open the audit log `{}`; `chmod 600` ends that",
            path.display()
        );
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
            for line in refusals.due(false) {
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
                for line in refusals.due(true) {
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

/// A line is not longer than this, its newline included.
pub(crate) const MAX_LINE_BYTES: usize = 4096;
/// Length of most lines.
const USUAL_LINE_BYTES: usize = 768;

/// A line that is being written, with its members in their order.
pub(crate) struct AuditLine<'r>(Vec<(&'static str, AuditValue<'r>)>);

#[derive(Serialize)]
#[serde(untagged)]
enum AuditValue<'r> {
    Text(Option<Cow<'r, str>>),
    Number(Option<u64>),
    Flag(bool),
    /// JSON of a bounded length.
    Json(Box<RawValue>),
}

impl<'r> AuditLine<'r> {
    pub(crate) fn new(event: &'static str, time: SystemTime) -> Self {
        let mut line = Vec::with_capacity(24);
        line.push(("time", AuditValue::Text(Some(rfc_3339(time).into()))));
        line.push(("event", AuditValue::Text(Some(event.into()))));
        Self(line)
    }

    /// A text of at most `max_bytes` bytes, or `null`.
    pub(crate) fn text(&mut self, name: &'static str, value: Option<&'r str>, max_bytes: usize) {
        let value = value.map(|value| {
            let is_clean =
                value.len() <= max_bytes && value.bytes().all(|byte| byte.is_ascii_graphic());
            if is_clean {
                Cow::Borrowed(value)
            } else {
                text::truncate(&text::one_line(value), max_bytes).into()
            }
        });
        self.0.push((name, AuditValue::Text(value)));
    }

    pub(crate) fn number(&mut self, name: &'static str, value: Option<impl TryInto<u64>>) {
        let value = value.map(|value| value.try_into().unwrap_or(u64::MAX));
        self.0.push((name, AuditValue::Number(value)));
    }

    pub(crate) fn flag(&mut self, name: &'static str, value: bool) {
        self.0.push((name, AuditValue::Flag(value)));
    }

    /// An object of at most 512 bytes.
    pub(crate) fn object(&mut self, name: &'static str, value: &impl Serialize) {
        const MAX_OBJECT_BYTES: usize = 512;
        let value = match to_raw_value(value) {
            Ok(value) if value.get().len() <= MAX_OBJECT_BYTES => AuditValue::Json(value),
            _ => AuditValue::Text(None),
        };
        self.0.push((name, value));
    }

    /// The line with its newline. What escapes make too long loses its longest texts.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        loop {
            let line = self.write();
            if line.len() <= MAX_LINE_BYTES || !self.halve_longest_text() {
                return line;
            }
        }
    }

    fn write(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(USUAL_LINE_BYTES);
        for (index, (name, value)) in self.0.iter().enumerate() {
            line.extend_from_slice(if index == 0 { b"{\"" } else { b",\"" });
            line.extend_from_slice(name.as_bytes());
            line.extend_from_slice(b"\":");
            // Into memory, and without keys that could be no texts.
            let _ = serde_json::to_writer(&mut line, value);
        }
        line.extend_from_slice(b"}\n");
        line
    }

    /// Cuts the longest of the texts in half; `false` if no text is left.
    fn halve_longest_text(&mut self) -> bool {
        let texts = self.0.iter_mut().filter_map(|(_, value)| match value {
            AuditValue::Text(Some(text)) if !text.is_empty() => Some(text),
            _ => None,
        });
        let Some(longest) = texts.max_by_key(|text| text.len()) else {
            return false;
        };
        let half = longest.chars().count() / 2;
        *longest = longest.chars().take(half).collect();
        true
    }
}

/// `2026-07-28T12:34:56.789Z`.
fn rfc_3339(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).map(|time| format!("{time:.3}"));
    time.unwrap_or_default()
}

/// Number of reasons that are distinguished; they are this program's own.
const MAX_REASONS: usize = 32;

/// The refused requests, by reason.
#[derive(Default)]
pub(super) struct RefusalCounts(Mutex<BTreeMap<&'static str, RefusalCount>>);

#[derive(Default)]
struct RefusalCount {
    told: OncePerMinute,
    untold: u64,
}

impl RefusalCounts {
    /// Counts a refused request. Returns the line of a reason that was not reported within the last
    /// minute.
    pub(super) fn count(&self, reason: &'static str) -> Option<Vec<u8>> {
        let mut counts = self.0.lock();
        if counts.len() >= MAX_REASONS && !counts.contains_key(reason) {
            return None;
        }
        let known = counts.entry(reason).or_default();
        known.untold += 1;
        known.told.is_due().then(|| known.tell(reason))
    }

    /// Returns the lines of unreported reasons; unless it is the end, of those that were not reported
    /// for a minute.
    fn due(&self, is_end: bool) -> Vec<Vec<u8>> {
        let mut counts = self.0.lock();
        counts
            .iter_mut()
            .filter(|(_, known)| known.untold > 0 && (is_end || known.told.is_due()))
            .map(|(reason, known)| known.tell(reason))
            .collect()
    }
}

impl RefusalCount {
    fn tell(&mut self, reason: &str) -> Vec<u8> {
        let mut line = AuditLine::new("refused", SystemTime::now());
        line.text("reason", Some(reason), 64);
        line.number("count", Some(std::mem::take(&mut self.untold)));
        line.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::Value;

    use super::*;

    #[test]
    fn times_are_utc_with_milliseconds() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_785_242_096_789, "2026-07-28T12:34:56.789Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(
                rfc_3339(UNIX_EPOCH + Duration::from_millis(millis)),
                expected
            );
        }
    }

    #[test]
    fn no_line_is_longer_than_one_write_may_be() {
        let mut line = AuditLine::new("call", UNIX_EPOCH);
        let long = "\u{1}\"\\é".repeat(2000);
        for name in ["client", "path", "tool", "api"] {
            line.text(name, Some(&long), 3000);
        }
        line.number("status", Some(200));
        let line = line.finish();
        assert!(line.len() <= MAX_LINE_BYTES, "{}", line.len());
        let read: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read["status"], 200);
    }
}
