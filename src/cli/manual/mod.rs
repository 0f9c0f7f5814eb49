//! Help for users: a demonstration, completions for shells, the manual pages. `openapi-mcp completions`
//! reads neither a configuration nor a value of the environment.

pub(crate) mod demo;
pub(crate) mod manual_page;

use std::process::ExitCode;

use clap_complete::Shell;

use super::{output, visible_command};
use crate::error::Failure;

#[derive(clap::Args)]
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

#[cfg(test)]
mod example_file_tests;

/// The pages of the book that are made from the command line: the settings, and the commands.
/// `UPDATE=1` writes them.
#[cfg(test)]
mod tests {
    use clap::builder::PossibleValue;
    use clap::{Arg, Command, CommandFactory as _};

    use super::example_file_tests::{structured_key, structured_keys};
    use crate::cli::{Cli, whole_command};
    use crate::config::settings::is_key_alone;
    use crate::config::tables::RANGES;

    /// The pages of settings: the file, the title, and the sections of `--help` that each has.
    pub(super) const PAGES: [(&str, &str, &[&str]); 4] = [
        (
            "settings-api",
            "Settings of the API",
            &["Document", "Upstream", "Credentials"],
        ),
        (
            "settings-tools",
            "Settings of the tools",
            &["Tools", "Calls", "Clients"],
        ),
        (
            "settings-server",
            "Settings of the server",
            &["HTTP", "Authentication", "Log", "Configuration file"],
        ),
        (
            "settings-operations",
            "Settings of operations",
            &["Operations"],
        ),
    ];

    const GENERATED: &str = "<!-- UPDATE=1 cargo test --locked --lib writes this page. -->";

    const EXIT_CODES: &str = "## Exit codes

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | a call failed, the server is unhealthy, or a change was declined; `check` found that an operation was lost, that there is no tool or that `serve` would not start (with `--strict`: or anything not read exactly); `diff` found that a client could break; no one is signed in, or a login could not be revoked |
| 2 | the settings are wrong, a rule matches no operation, no server of the API is usable, or the address to listen on cannot be used |
| 3 | the document cannot be read or served |

";

    /// Compares a generated file with its text, or writes it.
    pub(super) fn write_or_compare(name: &str, text: &str) {
        let path = format!("{}/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == text,
            "{name} is stale: run the tests once with UPDATE=1"
        );
    }

    pub(super) fn is_switch(argument: &Arg) -> bool {
        !argument.get_action().takes_values()
            || argument
                .get_value_names()
                .is_some_and(|names| names == ["BOOL"])
    }

    /// The value of an argument as `--help` shows it; empty for a switch.
    fn value_of(argument: &Arg) -> String {
        if is_switch(argument) {
            String::new()
        } else {
            argument.get_value_names().unwrap_or_default().join(" ")
        }
    }

    pub(super) fn meaning_of(argument: &Arg) -> String {
        let text = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        text.trim_end_matches('.').replace('<', "&lt;")
    }

    pub(super) fn section_of(argument: &Arg) -> Option<&str> {
        if argument.get_id() == "config" {
            return Some("Configuration file");
        }
        argument.get_help_heading()
    }

    /// One setting, as a term of a definition list and what it means.
    fn setting(argument: &Arg) -> Option<String> {
        let (flag, variable) = (argument.get_long()?, argument.get_env()?);
        let key = argument.get_id().as_str();
        let value = value_of(argument);
        let (title, places) = if is_key_alone(argument) {
            (key.to_owned(), "Key only".to_owned())
        } else {
            let variable = variable.to_string_lossy();
            let key = match key {
                "config" | "api" => String::new(),
                key => format!(", key `{key}`"),
            };
            (
                format!("--{flag} {value}"),
                format!("Variable `{variable}`{key}"),
            )
        };
        let mut part = format!(
            "`{}`\n:   {}.{}  \n    {places}\n\n",
            title.trim(),
            meaning_of(argument),
            range_of(key)
        );
        let choices = choices_of(argument);
        for (choice, about) in &choices {
            part.push_str(&format!("    - `{choice}`: {about}\n"));
        }
        if !choices.is_empty() {
            part.push('\n');
        }
        Some(part)
    }

    /// The sentence about the numbers that a setting may have.
    pub(super) fn range_of(key: &str) -> String {
        let range = RANGES.iter().find(|range| range.key == key);
        range
            .map(|range| format!(" It must be {range}."))
            .unwrap_or_default()
    }

    /// The words that a setting takes, each with its meaning.
    pub(super) fn choices_of(argument: &Arg) -> Vec<(String, String)> {
        // A flag that is refused takes any value.
        let declared = Cli::command();
        let declared = declared.find_subcommand("serve").and_then(|serve| {
            serve
                .get_arguments()
                .find(|one| one.get_id() == argument.get_id())
        });
        let choices = declared.filter(|_| !is_switch(argument));
        let choices = choices.map(Arg::get_possible_values).unwrap_or_default();
        let about = |choice: &PossibleValue| choice.get_help().map(ToString::to_string);
        choices
            .iter()
            .map(|choice| {
                (
                    choice.get_name().to_owned(),
                    about(choice).unwrap_or_default(),
                )
            })
            .collect()
    }

    fn settings_page(title: &str, sections: &[&str]) -> String {
        let cli = whole_command();
        let serve = cli.find_subcommand("serve").unwrap();
        let mut page = format!(
            "{GENERATED}\n\n# {title}\n\n[How settings work](settings.md) explains flags, variables and the configuration file.\n\n"
        );
        for section in sections {
            page.push_str(&format!("## {section}\n\n"));
            let of_section = serve
                .get_arguments()
                .filter(|argument| section_of(argument) == Some(section));
            page.extend(of_section.filter_map(setting));
            page.extend(structured_keys(section).map(structured_key));
        }
        page.trim_end().to_owned() + "\n"
    }

    /// A row for an option or a value that is no setting.
    fn option(argument: &Arg) -> String {
        let value = value_of(argument);
        let name = argument
            .get_long()
            .map_or(value.clone(), |flag| format!("--{flag} {value}"));
        let mut text = meaning_of(argument);
        if !is_switch(argument) {
            let choices = argument.get_possible_values();
            let choices: Vec<String> = choices
                .iter()
                .map(|choice| format!("`{}`", choice.get_name()))
                .collect();
            if !choices.is_empty() {
                text.push_str(&format!(": {}", choices.join(", ")));
            }
            let defaults = argument
                .get_default_values()
                .iter()
                .map(|value| value.to_string_lossy());
            for default in defaults {
                text.push_str(&format!(" (default: `{default}`)"));
            }
        }
        format!("| `{}` | {} |\n", name.trim(), text.replace('|', " or "))
    }

    fn command(command: &mut Command) -> String {
        let usage = command.render_usage().to_string();
        let takes_settings = command
            .get_arguments()
            .any(|argument| argument.get_id() == "spec");
        let mut part = format!(
            "## `openapi-mcp {}`\n\n`{}`{}\n\n",
            command.get_name(),
            usage.trim_start_matches("Usage: "),
            if takes_settings {
                ", with [settings](settings.md)"
            } else {
                ""
            }
        );
        let is_own = |argument: &&Arg| {
            argument.get_env().is_none() && !argument.is_hide_set() && argument.get_id() != "help"
        };
        let rows: String = command.get_arguments().filter(is_own).map(option).collect();
        if !rows.is_empty() {
            part.push_str(&format!("| option | meaning |\n|---|---|\n{rows}\n"));
        }
        // The pages of settings and credentials have what is said of variables.
        let is_of_variables = |text: &&str| {
            ["Credentials:", "Each of these"]
                .iter()
                .any(|beginning| text.starts_with(beginning))
        };
        if let Some(text) = command.get_after_help().map(ToString::to_string) {
            let paragraphs: Vec<&str> = text
                .trim()
                .split("\n\n")
                .filter(|text| !is_of_variables(text))
                .collect();
            part.push_str(&format!("```text\n{}\n```\n\n", paragraphs.join("\n\n")));
        }
        part
    }

    fn commands_page() -> String {
        let mut cli = whole_command();
        cli.build();
        let mut page =
            format!("{GENERATED}\n\n# Commands\n\n| command | what it does |\n|---|---|\n");
        let mut parts = String::new();
        for listed in cli
            .get_subcommands_mut()
            .filter(|listed| !listed.is_hide_set())
        {
            let name = listed.get_name().to_owned();
            if name != "help" {
                let about = listed
                    .get_about()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                page.push_str(&format!("| [`{name}`](#openapi-mcp-{name}) | {about} |\n"));
                parts.push_str(&command(listed));
            }
        }
        format!("{page}\n{EXIT_CODES}{parts}").trim_end().to_owned() + "\n"
    }

    #[test]
    fn the_pages_of_settings_are_as_fresh_as_the_schema() {
        let sections: Vec<&str> = PAGES
            .iter()
            .flat_map(|(_, _, sections)| sections.iter().copied())
            .collect();
        let cli = whole_command();
        let serve = cli.find_subcommand("serve").unwrap();
        for argument in serve
            .get_arguments()
            .filter(|argument| argument.get_env().is_some())
        {
            let is_on_a_page =
                section_of(argument).is_some_and(|section| sections.contains(&section));
            assert!(
                is_on_a_page,
                "{}: its `help_heading` is the section of no page",
                argument.get_id()
            );
        }
        for (name, title, sections) in PAGES {
            write_or_compare(
                &format!("docs/reference/{name}.md"),
                &settings_page(title, sections),
            );
        }
    }

    #[test]
    fn the_page_of_commands_is_as_fresh_as_the_command_line() {
        write_or_compare("docs/reference/commands.md", &commands_page());
    }
}
