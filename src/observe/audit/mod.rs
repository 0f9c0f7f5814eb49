//! The audit log: one line with a JSON object for each call, refused ones included. Values of
//! arguments are never in it. A thread writes it, so that no call waits for a disk, unless
//! `audit_log_required` is set.
//!
//! # Adding a field of the audit log
//!
//! - A field of `CallRecord`, `Arrival` or `CalledOperation` in `observe/call.rs`, written by
//!   `line` in `observe/call.rs`.
//! - Its value is set with `note` where it becomes known; what is known at the start, by `arrival`
//!   in `mcp/observed.rs` or `called_operation` in `api/mod.rs`.
//! - A test in `tests/it/http/audit.rs`.

pub(crate) mod writer;

use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use serde_json::{Map, Value};
use tokio::sync::oneshot;

use self::writer::{AuditOptions, RefusalCounts, WriterTask};
use crate::text::hex;

/// Lines that may wait for the disk.
const MAX_QUEUED_LINES: usize = 8192;
/// Time for which a call waits for its line if it must.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// Time for which the end of the process waits for the lines.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The log.
pub(crate) struct AuditLog {
    sender: SyncSender<WriterTask>,
    key: hmac::Key,
    /// The identifier of the key, which shows if two hashes may be compared.
    pub(crate) key_id: String,
    pub(super) is_required: bool,
    on_loss: fn(),
    refusals: Arc<RefusalCounts>,
}

impl AuditLog {
    /// Opens the log and starts its thread; `on_loss` is called for each lost line.
    ///
    /// # Errors
    /// The file cannot be opened, or is not a plain file; in a sentence.
    pub(crate) fn start(options: &AuditOptions, on_loss: fn()) -> Result<Self, String> {
        use secrecy::ExposeSecret as _;

        let mut bytes = [0; 32];
        let key = if let Some(key) = &options.key {
            key.expose_secret().as_bytes()
        } else {
            getrandom::fill(&mut bytes)
                .map_err(|error| format!("no random key can be made: {error}"))?;
            &bytes
        };
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let output = writer::AuditOutput::open(&options.target)?;
        let (sender, receiver) = sync_channel(MAX_QUEUED_LINES);
        let refusals = Arc::new(RefusalCounts::default());
        let counted = Arc::clone(&refusals);
        std::thread::Builder::new()
            .name("audit".into())
            .spawn(move || writer::write_lines(output, &receiver, &counted, on_loss))
            .map_err(|error| format!("its thread cannot be started: {error}"))?;
        let key_id = hmac::sign(&key, b"openapi-mcp audit key");
        Ok(Self {
            sender,
            key_id: beginning(key_id, 8),
            key,
            is_required: options.required,
            on_loss,
            refusals,
        })
    }

    /// A name for who holds a secret, such as a token.
    pub(crate) fn name_of_secret(&self, kind: &str, secret: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(kind.as_bytes());
        context.update(&[0]);
        context.update(secret);
        format!("{kind}:{}", beginning(context.sign(), 16))
    }

    /// The HMAC-SHA-256 of the JSON text `[api, tool, arguments]`, with the members of objects
    /// sorted by name and numbers as they were written.
    pub(crate) fn hash_arguments(
        &self,
        api: &str,
        tool: &str,
        arguments: Option<&Map<String, Value>>,
    ) -> String {
        let mut text = String::from("[");
        for part in [api, tool] {
            text.push_str(&Value::from(part).to_string());
            text.push(',');
        }
        match arguments {
            Some(arguments) => write_sorted_object(arguments, &mut text),
            None => text.push_str("{}"),
        }
        text.push(']');
        hex(hmac::sign(&self.key, text.as_bytes()).as_ref())
    }

    /// Passes a line to the thread; if there is no room it is lost, and counted.
    pub(crate) fn write(&self, line: Vec<u8>) {
        if self.sender.try_send(WriterTask::Line(line, None)).is_err() {
            writer::count_lost(self.on_loss, "lines come faster than they can be written");
        }
    }

    /// The same, and waits until it is written.
    pub(crate) async fn write_and_wait(&self, line: Vec<u8>) -> Result<(), ()> {
        let (done, written) = oneshot::channel();
        self.sender
            .try_send(WriterTask::Line(line, Some(done)))
            .map_err(|_| ())?;
        match tokio::time::timeout(WRITE_TIMEOUT, written).await {
            Ok(Ok(true)) => Ok(()),
            _ => Err(()),
        }
    }

    /// A request was refused before its body was read: one line a minute for each reason, with how
    /// many there were.
    pub(super) fn refused_request(&self, reason: &'static str) {
        if let Some(line) = self.refusals.count(reason) {
            self.write(line);
        }
    }

    /// Opens the file anew, which may have been renamed.
    pub(crate) fn reopen(&self) {
        let _ = self.sender.try_send(WriterTask::Reopen);
    }

    /// Waits until everything is written, for two seconds at most.
    pub(super) fn flush(&self) {
        let (done, written) = std::sync::mpsc::channel();
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let mut message = WriterTask::Flush(done);
        // The queue may be full at this moment.
        while Instant::now() < deadline {
            match self.sender.try_send(message) {
                Ok(()) => {
                    let _ =
                        written.recv_timeout(deadline.saturating_duration_since(Instant::now()));
                    return;
                }
                Err(TrySendError::Full(back)) => {
                    message = back;
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(TrySendError::Disconnected(_)) => return,
            }
        }
    }
}

/// The first bytes of a hash in hexadecimal digits.
fn beginning(tag: hmac::Tag, bytes: usize) -> String {
    hex(tag.as_ref().get(..bytes).unwrap_or_default())
}

fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => write_sorted_object(members, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

fn write_sorted_object(members: &Map<String, Value>, out: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    out.push('{');
    for (index, (name, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(&Value::from(name.as_str()).to_string());
        out.push(':');
        write_sorted(value, out);
    }
    out.push('}');
}
