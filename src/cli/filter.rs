//! `openapi-mcp filter`, which no person calls: runs one jq filter over one reply, within limits,
//! and ends. Both come over standard input: the filter in the first line, as a JSON string, then
//! the reply.

use std::io::Read as _;
use std::process::ExitCode;

use super::output;
use crate::error::Failure;
use crate::results::filter;

/// Memory of the process, in bytes: addresses, of which an allocator reserves more than it uses.
#[cfg(unix)]
const MAX_MEMORY_BYTES: u64 = 512 << 20;
/// Time on a processor, in seconds.
#[cfg(unix)]
const MAX_CPU_SECONDS: u64 = 3;

pub(crate) fn run() -> Result<ExitCode, Failure> {
    #[cfg(unix)]
    for (resource, limit) in [
        (rlimit::Resource::AS, MAX_MEMORY_BYTES),
        (rlimit::Resource::CPU, MAX_CPU_SECONDS),
        (rlimit::Resource::CORE, 0),
    ] {
        rlimit::setrlimit(resource, limit, limit)
            .map_err(|error| Failure::Io("the filter cannot be limited".into(), error))?;
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::Io("the filter cannot be read".into(), error))?;
    let (program, json) = text.split_once('\n').unwrap_or((&text, ""));
    let program: String = serde_json::from_str(program).unwrap_or_default();
    let (output, code) = match filter::run_filter(&program, json) {
        Ok(output) => (output, ExitCode::SUCCESS),
        Err(complaint) => (complaint, ExitCode::from(filter::REJECTED)),
    };
    output::print_result(&output)?;
    Ok(code)
}
