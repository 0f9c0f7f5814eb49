//! Filters of replies in a process of their own: this program again, without environment, with limits of time and memory that
//! the system keeps. A filter that asks for too much ends, and nothing else does.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Semaphore;

/// How long a filter may run.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest program, in bytes.
const LONGEST_PROGRAM: usize = 4096;
/// How much of a complaint is told.
const LONGEST_COMPLAINT: u64 = 500;

/// What runs filters.
#[derive(Debug, Clone)]
pub struct Sandbox {
    /// This program's own file.
    pub program: PathBuf,
    /// The largest output, in bytes.
    pub limit: usize,
    /// Places for filters that run at the same time: together they take no more than the machine can spare.
    pub places: Arc<Semaphore>,
}

/// Filters at the same time.
pub const MOST: usize = 4;

impl Sandbox {
    /// What the filter makes of the JSON.
    ///
    /// # Errors
    /// A sentence for the model.
    pub async fn run(&self, filter: &str, json: &[u8]) -> Result<Vec<u8>, String> {
        if filter.len() > LONGEST_PROGRAM {
            return Err(format!("it is longer than {LONGEST_PROGRAM} bytes"));
        }
        let waiting = tokio::time::timeout(PATIENCE, self.places.acquire());
        let Ok(Ok(_place)) = waiting.await else {
            return Err("too many filters run already".into());
        };
        let mut child = Command::new(&self.program)
            .arg("filter")
            .env_clear()
            // The allocator would reserve memory before there is a limit, which does not count then.
            .env("MIMALLOC_ARENA_RESERVE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                tracing::error!("filters cannot be run: {error}");
                "filters cannot be run here".to_owned()
            })?;
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take()) else {
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
            let (mut out, mut complaint) = (Vec::new(), String::new());
            let mut stdout = stdout.take(most.saturating_add(1));
            let mut stderr = stderr.take(LONGEST_COMPLAINT);
            let take = stdout.read_to_end(&mut out);
            let hear = stderr.read_to_string(&mut complaint);
            let (read, heard, ()) = futures_util::join!(take, hear, give);
            let too_much = out.len() > self.limit;
            if too_much {
                let _ = child.start_kill();
            }
            let status = child.wait().await;
            match (read.and(heard), status) {
                _ if too_much => Err("it gives more than a reply may hold".to_owned()),
                (Ok(_), Ok(status)) if status.success() => Ok(out),
                _ if complaint.trim().is_empty() => Err("it wants more time or memory than a filter may have".into()),
                _ => Err(complaint.trim().to_owned()),
            }
        };
        match tokio::time::timeout(PATIENCE, talk).await {
            Ok(result) => result,
            Err(_) => Err(format!("it runs for more than {} s", PATIENCE.as_secs())),
        }
    }
}
