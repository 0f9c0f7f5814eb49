//! `openapi-mcp man`: a manual page of the program, and one of each command.

use std::io;
use std::process::ExitCode;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, line_break, roman};

use crate::cli::{help, output, visible_command};
use crate::error::Failure;

#[derive(clap::Args)]
#[command(after_help = PLACES)]
pub(crate) struct ManCommand {
    /// The command whose page it is; without it, the page of the program
    #[arg(value_name = "COMMAND")]
    of: Option<String>,
}

/// Text after the flags of `man`.
const PLACES: &str = "\
Where `man` looks for pages:
  openapi-mcp man        ~/.local/share/man/man1/openapi-mcp.1
  openapi-mcp man serve  ~/.local/share/man/man1/openapi-mcp-serve.1";

/// Beginnings of the paragraphs after the flags that have a section of their own.
const BEGINNINGS: [&str; 3] = ["Examples:", "Exit codes:", "Credentials:"];

const ENVIRONMENT: &str = "OPENAPI_MCP_<SETTING> is a setting, as OPENAPI_MCP_BASE_URL is --base-url; a flag is stronger. OPENAPI_MCP_AUTH_<SCHEME> is a credential of the API, for a security scheme of its document.";
const EXIT_STATUS: &str = "0 success, 1 a call or something else failed, 2 invalid settings, 3 a document that cannot be served";

pub(crate) fn print_manual(command: &ManCommand) -> Result<ExitCode, Failure> {
    let program = visible_command();
    let page = match &command.of {
        None => page_of_program(&program),
        Some(name) => match program
            .get_subcommands()
            .find(|command| command.get_name() == name)
        {
            Some(found) => page_of_command(found, &program),
            None => {
                return Err(Failure::setting(format!(
                    "there is no command `{name}`; the commands are {}",
                    names(&program).join(", ")
                )));
            }
        },
    };
    let page =
        page.map_err(|error| Failure::Io("the manual page cannot be written".into(), error))?;
    output::print_result(&String::from_utf8_lossy(&page))?;
    Ok(ExitCode::SUCCESS)
}

fn names(program: &Command) -> Vec<&str> {
    program.get_subcommands().map(Command::get_name).collect()
}

/// The title, and the sections up to the description.
fn beginning_of(command: Command) -> io::Result<Vec<u8>> {
    let page = Man::new(command).manual("openapi-mcp");
    let mut bytes = Vec::new();
    page.render_title(&mut bytes)?;
    page.render_name_section(&mut bytes)?;
    page.render_synopsis_section(&mut bytes)?;
    page.render_description_section(&mut bytes)?;
    Ok(bytes)
}

fn page_of_program(program: &Command) -> io::Result<Vec<u8>> {
    let mut bytes = beginning_of(program.clone().disable_help_subcommand(true))?;
    let mut rest = Roff::new();
    rest.control("SH", ["COMMANDS"]);
    for command in program.get_subcommands() {
        rest.control("TP", []);
        rest.text([bold(command.get_name())]);
        rest.text([roman(
            command
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default(),
        )]);
    }
    write_section(
        &mut rest,
        "EXAMPLES",
        &paragraph_of(help::SERVE_EXAMPLES, "Examples:"),
    );
    write_section(&mut rest, "ENVIRONMENT", ENVIRONMENT);
    write_files(&mut rest);
    write_section(&mut rest, "EXIT STATUS", EXIT_STATUS);
    let pages = names(program)
        .into_iter()
        .map(|name| format!("openapi-mcp-{name}(1)"));
    write_section(&mut rest, "SEE ALSO", &pages.collect::<Vec<_>>().join(", "));
    rest.to_writer(&mut bytes)?;
    Ok(bytes)
}

fn page_of_command(command: &Command, program: &Command) -> io::Result<Vec<u8>> {
    let usage = command
        .clone()
        .bin_name(format!("openapi-mcp {}", command.get_name()))
        .render_usage()
        .to_string();
    let own = help::with_long_help(command)
        .name(format!("openapi-mcp-{}", command.get_name()))
        .version(program.get_version().unwrap_or_default().to_owned())
        // All flags of a command that serves take a screen.
        .override_usage(usage.trim_start_matches("Usage: ").to_owned());
    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut bytes = beginning_of(own.clone())?;
    Man::new(own).render_options_section(&mut bytes)?;
    let mut rest = Roff::new();
    write_section(&mut rest, "EXAMPLES", &paragraph_of(&after, "Examples:"));
    write_section(&mut rest, "NOTES", &notes_of(&after));
    write_section(&mut rest, "ENVIRONMENT", ENVIRONMENT);
    write_files(&mut rest);
    let own_codes = paragraph_of(&after, "Exit codes:");
    write_section(
        &mut rest,
        "EXIT STATUS",
        if own_codes.is_empty() {
            EXIT_STATUS
        } else {
            &own_codes
        },
    );
    write_section(&mut rest, "SEE ALSO", "openapi-mcp(1)");
    rest.to_writer(&mut bytes)?;
    Ok(bytes)
}

/// The text behind a beginning, up to the end of its paragraph.
fn paragraph_of(text: &str, beginning: &str) -> String {
    let found = text
        .split("\n\n")
        .find_map(|paragraph| paragraph.strip_prefix(beginning));
    found
        .map(|rest| rest.trim_matches('\n').to_owned())
        .unwrap_or_default()
}

/// The paragraphs that belong to no other section.
fn notes_of(text: &str) -> String {
    let is_note = |paragraph: &&str| {
        let mut beginnings = BEGINNINGS.iter();
        !beginnings.any(|beginning| paragraph.starts_with(beginning))
    };
    text.split("\n\n")
        .filter(is_note)
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn write_files(roff: &mut Roff) {
    roff.control("SH", ["FILES"]);
    for (name, text) in [
        (
            "openapi-mcp.yaml",
            "the settings, under any name that --config gives; flags and variables are stronger",
        ),
        (
            "tokens.json",
            "refresh tokens, under any name that `token_store` gives",
        ),
    ] {
        roff.control("TP", []);
        roff.text([bold(name)]);
        roff.text([roman(text)]);
    }
}

/// Writes a section line by line; one without text is left out.
fn write_section(roff: &mut Roff, title: &str, text: &str) {
    if text.is_empty() {
        return;
    }
    roff.control("SH", [title]);
    for paragraph in text.split("\n\n") {
        roff.control("PP", []);
        let lines = paragraph
            .lines()
            .map(|line| [roman(line.trim()), line_break()]);
        roff.text(lines.flatten().collect::<Vec<Inline>>());
    }
}
