//! `openapi-mcp completions`: it reads neither a configuration nor a value of the environment.

use std::process::ExitCode;

use clap_complete::Shell;

use crate::cli::{output, visible_command};
use crate::error::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = PLACES)]
pub(crate) struct CompletionsCommand {
    /// The shell
    shell: Shell,
}

/// Text after the flags of `completions`.
const PLACES: &str = "\
Where shells look for the script:
  bash  ~/.local/share/bash-completion/completions/openapi-mcp
  zsh   _openapi-mcp in a folder of $fpath
  fish  ~/.config/fish/completions/openapi-mcp.fish";

pub(crate) fn print_completions(command: &CompletionsCommand) -> Result<ExitCode, Failure> {
    let mut bytes = Vec::new();
    clap_complete::generate(
        command.shell,
        &mut visible_command(),
        "openapi-mcp",
        &mut bytes,
    );
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if command.shell == Shell::Bash {
        // clap_complete takes the hyphen in the name for the border of a subcommand in half of the
        // script.
        text = text.replace("openapi__subcmd__mcp", "openapi__mcp");
    }
    output::print_result(&text)?;
    Ok(ExitCode::SUCCESS)
}
