//! `openapi-mcp completions` and `man`: neither reads a configuration or a value of the environment.

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::{Cli, output};
use crate::error::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

pub(crate) fn print_completions(command: &CompletionsCommand) -> Result<ExitCode, Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(command.shell, &mut Cli::command(), "openapi-mcp", &mut bytes);
    output::print_result(&String::from_utf8_lossy(&bytes))?;
    Ok(ExitCode::SUCCESS)
}

/// One page: the commands, then the settings of `serve`.
pub(crate) fn print_manual() -> Result<ExitCode, Failure> {
    let failed = |error| Failure::Io("the manual page cannot be written".into(), error);
    let command = Cli::command();
    let mut bytes = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut bytes).map_err(failed)?;
    for part in command.get_subcommands().filter(|part| !part.is_hide_set()) {
        let name = format!("openapi-mcp-{}", part.get_name());
        // The values of variables would otherwise be printed beside their names.
        let part = part.clone().name(name).mut_args(|argument| argument.hide_env_values(true));
        let man = clap_mangen::Man::new(part);
        man.render_name_section(&mut bytes).map_err(failed)?;
        man.render_synopsis_section(&mut bytes).map_err(failed)?;
        man.render_options_section(&mut bytes).map_err(failed)?;
    }
    output::print_result(&String::from_utf8_lossy(&bytes))?;
    Ok(ExitCode::SUCCESS)
}
