//! Filters of replies in a process of their own: this program again, without environment, with
//! limits of time and memory that the system keeps. A filter that asks for too much ends, and
//! nothing else does.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use serde::de::IgnoredAny;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Reply, filter, reply_json};
use crate::text;

/// Number of filters that may run at the same time.
pub(crate) const MAX_PARALLEL_FILTERS: usize = 4;
/// Time limit of a filter.
const FILTER_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest program, in bytes.
const MAX_PROGRAM_BYTES: usize = 4096;
/// The longest complaint that is shown, in bytes.
const MAX_COMPLAINT: usize = 500;
/// The exit code of a Rust program that panicked.
const PANICKED: i32 = 101;

/// Sandbox that runs filters.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// The file of `openapi-mcp`, which is started with the argument `filter`.
    pub program: PathBuf,
    /// The largest output, in bytes.
    pub limit: usize,
    /// Places for filters that run at the same time: together they take no more than the machine
    /// can spare.
    pub places: Arc<Semaphore>,
}

/// Failure of a filter, in words for its author.
pub(crate) enum FilterFailure {
    /// Error of the program itself, which may hold parts of the reply.
    OfProgram(String),
    /// Error of the sandbox or its limits.
    OfSandbox(String),
}

impl FilterFailure {
    /// The same without any part of the reply.
    pub(crate) fn without_reply(&self) -> &str {
        match self {
            Self::OfProgram(_) => "it failed on this reply",
            Self::OfSandbox(why) => why,
        }
    }

    fn into_words(self) -> String {
        match self {
            Self::OfProgram(why) | Self::OfSandbox(why) => why,
        }
    }
}

impl From<&str> for FilterFailure {
    fn from(why: &str) -> Self {
        Self::OfSandbox(why.to_owned())
    }
}

impl Sandbox {
    /// Returns the output of the filter for the JSON.
    ///
    /// # Errors
    /// A sentence for the model.
    pub async fn run(&self, filter: &str, json: &[u8]) -> Result<Vec<u8>, String> {
        let run = self.run_waiting(filter, json, FILTER_TIMEOUT).await;
        run.map_err(FilterFailure::into_words)
    }

    /// Runs a filter like [`Sandbox::run`], and waits at most `max_wait` for a place.
    ///
    /// # Errors
    /// [`FilterFailure`].
    pub(crate) async fn run_waiting(
        &self,
        filter: &str,
        json: &[u8],
        max_wait: Duration,
    ) -> Result<Vec<u8>, FilterFailure> {
        if filter.len() > MAX_PROGRAM_BYTES {
            return Err(FilterFailure::OfSandbox(format!(
                "it is longer than {MAX_PROGRAM_BYTES} bytes"
            )));
        }
        let waiting = timeout(max_wait, self.places.acquire());
        let Ok(Ok(_place)) = waiting.await else {
            return Err("too many filters run already".into());
        };
        let mut child = Command::new(&self.program)
            .arg("filter")
            .env_clear()
            // The allocator would reserve memory before there is a limit, which does not count
            // then.
            .env("MIMALLOC_ARENA_RESERVE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                tracing::error!("filters cannot be run: {error}");
                FilterFailure::from("filters cannot be run here")
            })?;
        let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("filters cannot be run here".into());
        };
        let most = u64::try_from(self.limit).unwrap_or(u64::MAX);
        let talk = async {
            let give = async {
                // The program in one line, as JSON; a filter that ends early takes no more.
                let line = serde_json::Value::from(filter).to_string() + "\n";
                let _ = stdin.write_all(line.as_bytes()).await;
                let _ = stdin.write_all(json).await;
                drop(stdin);
            };
            let mut out = Vec::new();
            let mut stdout = stdout.take(most.saturating_add(1));
            let (read, ()) = futures_util::join!(stdout.read_to_end(&mut out), give);
            if out.len() > self.limit {
                let _ = child.start_kill();
                return Err(FilterFailure::from("it gives more than a reply may hold"));
            }
            match (read, child.wait().await) {
                (Ok(_), Ok(status)) if status.success() => Ok(out),
                (Ok(_), Ok(status)) if status.code() == Some(filter::REJECTED.into()) => {
                    let complaint = text::truncate(String::from_utf8_lossy(&out).trim(), MAX_COMPLAINT);
                    Err(FilterFailure::OfProgram(complaint))
                }
                (_, Ok(status)) if status.code().is_some_and(|code| code != PANICKED) => {
                    Err("it ended its own process, which `halt` and `halt_error` do: leave them out".into())
                }
                // Killed at a limit, or out of memory; the process's own words about that are not
                // for the model.
                _ => Err("it needs more time or memory than a filter may have, or a part of jq that is not available here".into()),
            }
        };
        match timeout(FILTER_TIMEOUT, talk).await {
            Ok(result) => result,
            Err(_) => Err(FilterFailure::OfSandbox(format!(
                "it runs for more than {} s",
                FILTER_TIMEOUT.as_secs()
            ))),
        }
    }
}

/// Puts what a filter makes of a reply in its place; a reply that is not JSON, and a failure, stay
/// as they are. `left` is what is left of the call's time.
pub(crate) async fn apply_filter(
    sandbox: &Sandbox,
    filter: &str,
    response: &mut Reply,
    left: Duration,
) -> Result<(), String> {
    if !response.status.is_success() {
        return Ok(());
    }
    let Some(json) = reply_json::json_text(response) else {
        return Err("The filter was not applied, because the reply is not JSON.".into());
    };
    let late = || Err("it was not done when the time for the call was over".into());
    match timeout(left, sandbox.run(filter, json.as_bytes())).await.unwrap_or_else(|_| late()) {
        // jq knows values that JSON does not, such as NaN.
        Ok(output) if serde_json::from_slice::<IgnoredAny>(output.as_ref()).is_err() => {
            Err("The filter was not applied, because its output is not JSON; the reply is given without it.".into())
        }
        Ok(output) => {
            reply_json::put_json(response, output.into());
            Ok(())
        }
        Err(why) => Err(format!("The filter was not applied, and the reply is given without it: {why}.")),
    }
}
