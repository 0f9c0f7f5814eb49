//! Filters of replies: jq programs that a model writes, run over a reply's JSON.
//!
//! The language can ask for more time and memory than there is. So a program runs in a process of
//! its own: this program again, without our environment. On Unix, the system limits its time and
//! memory; elsewhere this process limits its time alone. A filter that takes too long ends, and nothing
//! else does. `JMESPath` is not offered: the library for it reads number literals wrongly if numbers
//! keep all their digits.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use jaq_core::load::{Arena, File, Loader};
use jaq_core::{Compiler, Ctx, Filter, Vars, data, unwrap_valr};
use jaq_json::{Val, read};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Reply;
use crate::json::is_json;
use crate::text;

/// Number of filters that may run at the same time.
pub(crate) const MAX_PARALLEL_FILTERS: usize = 4;
/// Time limit of a filter.
pub(crate) const FILTER_TIMEOUT: Duration = Duration::from_secs(5);
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

/// Failure of a filter.
pub(crate) enum FilterFailure {
    /// The reply is not JSON.
    NotJson,
    /// The output is not JSON: jq knows values that JSON does not, such as NaN.
    OutputNotJson,
    /// Error of the program itself, in words that may hold parts of the reply.
    OfProgram(String),
    /// Error of the sandbox or its limits, in words for the author of the program.
    OfSandbox(String),
}

impl FilterFailure {
    fn into_words(self) -> String {
        match self {
            Self::NotJson => "the reply is not JSON".into(),
            Self::OutputNotJson => "its output is not JSON".into(),
            Self::OfProgram(why) | Self::OfSandbox(why) => why,
        }
    }

    /// Describes the failure of a filter of a model, which gets the reply as it is.
    pub(crate) fn describe(self) -> String {
        let (how, given) = match &self {
            Self::NotJson => (", because", ""),
            Self::OutputNotJson => (", because", "; the reply is given without it"),
            _ => (", and the reply is given without it:", ""),
        };
        let why = self.into_words();
        format!("The filter was not applied{how} {why}{given}.")
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
    async fn run_waiting(
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
        let talk = async {
            let give = async {
                // The program in one line, as JSON; a filter that ends early takes no more.
                let line = serde_json::Value::from(filter).to_string() + "\n";
                let _ = stdin.write_all(line.as_bytes()).await;
                let _ = stdin.write_all(json).await;
                drop(stdin);
            };
            let mut out = Vec::new();
            let mut stdout = stdout.take((self.limit as u64).saturating_add(1));
            let (read, ()) = futures_util::join!(stdout.read_to_end(&mut out), give);
            if out.len() > self.limit {
                let _ = child.start_kill();
                return Err(FilterFailure::from("it gives more than a reply may hold"));
            }
            match (read, child.wait().await) {
                (Ok(_), Ok(status)) if status.success() => Ok(out),
                (Ok(_), Ok(status)) if status.code() == Some(REJECTED.into()) => {
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

/// Puts what a filter makes of a reply in its place; the reply stays as it is if that fails. `left`
/// is what is left of the call's time, and `max_wait` the longest wait for a place.
///
/// # Errors
/// [`FilterFailure`].
pub(crate) async fn apply_filter(
    sandbox: &Sandbox,
    filter: &str,
    response: &mut Reply,
    left: Duration,
    max_wait: Duration,
) -> Result<(), FilterFailure> {
    let json = response.json_or_records();
    let json = json.filter(|json| is_json(json.as_bytes()));
    let json = json.ok_or(FilterFailure::NotJson)?;
    let run = sandbox.run_waiting(filter, json.as_bytes(), max_wait);
    let late = |_| FilterFailure::from("it was not done when the time for the call was over");
    let output = timeout(left, run).await.map_err(late)??;
    if !is_json(&output) {
        return Err(FilterFailure::OutputNotJson);
    }
    response.put_json(output);
    Ok(())
}

/// Exit code of a process whose standard output is the complaint of [`run`]; no other output of a
/// failed process is shown.
pub(crate) const REJECTED: u8 = 65;

/// Returns the output of the program for the JSON, as JSON; several outputs as a list.
///
/// # Errors
/// The fault of the program, or its error, in words for a model.
pub(crate) fn run_filter(program: &str, json: &str) -> Result<String, String> {
    let input = read::parse_single(json.as_bytes())
        .map_err(|error| format!("the reply cannot be read: {error}"))?;
    let filter = compile_program(program)?;
    let context = Ctx::<data::JustLut<Val>>::new(&filter.lut, Vars::new([]));
    let outputs: Vec<Val> = filter
        .id
        .run((context, input))
        .map(unwrap_valr)
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    Ok(match outputs.as_slice() {
        [only] => only.to_string(),
        several => {
            let several: Vec<String> = several.iter().map(ToString::to_string).collect();
            format!("[{}]", several.join(","))
        }
    })
}

/// Returns true if a text is a jq program.
///
/// # Errors
/// The fault.
pub(crate) fn check_program(program: &str) -> Result<(), String> {
    compile_program(program).map(|_| ())
}

fn compile_program(program: &str) -> Result<Filter<data::JustLut<Val>>, String> {
    let definitions = jaq_core::defs()
        .chain(jaq_std::defs())
        .chain(jaq_json::defs());
    let functions = jaq_core::funs()
        .chain(jaq_std::funs())
        .chain(jaq_json::funs());
    let arena = Arena::default();
    let modules = Loader::new(definitions)
        .load(
            &arena,
            File {
                code: program,
                path: (),
            },
        )
        .map_err(|errors| wrong(&format!("{errors:?}")))?;
    Compiler::default()
        .with_funs(functions)
        .compile(modules)
        .map_err(|errors| wrong(&format!("{errors:?}")))
}

/// Describes errors of jaq, which are values, by what they name.
fn wrong(errors: &str) -> String {
    let names: Vec<&str> = errors
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|name| !name.trim().is_empty())
        .collect();
    match names.last() {
        Some(name) => format!("it is not a jq program: look at `{name}`"),
        None => "it is not a jq program".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str =
        r#"{"total":12345678901234567890123,"items":[{"id":1,"name":"a"},{"id":2,"name":"b"}]}"#;

    #[test]
    fn jq_projects_and_keeps_numbers() {
        for (program, expected) in [
            (".items[].name", r#"["a","b"]"#),
            ("[.items[] | {id}]", r#"[{"id":1},{"id":2}]"#),
            (".total", "12345678901234567890123"),
            ("empty", "[]"),
            (".items | length", "2"),
        ] {
            assert_eq!(
                run_filter(program, JSON).as_deref(),
                Ok(expected),
                "{program}"
            );
        }
        for wrong in [".items[", "nosuchthing", ".total.name", "input"] {
            assert!(run_filter(wrong, JSON).is_err(), "{wrong}");
        }
    }
}
