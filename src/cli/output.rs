//! The output of a command: its result on standard output, which must arrive, and remarks on
//! standard error, which may be lost.

use std::io::{self, ErrorKind, Write as _};
use std::process::ExitCode;

use super::log;
use crate::error::Failure;

/// Writes the result of a command to standard output. A reader that left, as `head` does, is not an
/// error.
///
/// # Errors
/// An error if the text cannot be written, so that a loss does not look like success.
pub(crate) fn print_result(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    delivered(
        stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush()),
    )
}

/// Writes a remark that is not a part of the result to standard error, as a line. If standard error
/// is not read, the remark is lost, but the command ends.
pub(crate) fn print_remark(text: &str) {
    log::write_and_wait(&format!("{text}\n"));
}

/// Prints help, the version, or what is wrong with the command line, and gives the exit code.
pub(crate) fn print_usage(error: &clap::Error) -> Result<ExitCode, Failure> {
    if error.use_stderr() {
        print_remark(error.render().to_string().trim_end());
        return Ok(ExitCode::from(2));
    }
    let printed = error.print().and_then(|()| io::stdout().flush());
    delivered(printed)?;
    Ok(ExitCode::SUCCESS)
}

fn delivered(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::Io(
            "the output cannot be written to standard output".into(),
            error,
        )),
        _ => Ok(()),
    }
}
