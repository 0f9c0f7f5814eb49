//! Help for users: a demonstration, completions for shells, the manual pages.

pub(crate) mod demo;
pub(crate) mod manual_page;
pub(crate) mod shell;

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use crate::cli::{Cli, help};

    /// The page: a section for each heading of `--help`, and a part for each setting.
    fn reference() -> String {
        let cli = Cli::command();
        let serve = cli.find_subcommand("serve").unwrap();
        let mut sections: Vec<(&str, String)> = Vec::new();
        for argument in serve.get_arguments() {
            let (Some(flag), Some(variable)) = (argument.get_long(), argument.get_env()) else {
                continue;
            };
            let id = argument.get_id().as_str();
            let section = if id == "config" {
                "Configuration file"
            } else {
                help::section_of(id)
            };
            let value = argument.get_value_names().unwrap_or_default().join(" ");
            let is_switch = value == "BOOL";
            let text = argument.get_help().map(ToString::to_string).unwrap_or_default();
            let mut part = format!("### `--{flag}{}`\n\n", if is_switch { String::new() } else { format!(" {value}") });
            part.push_str(&format!("{}.\n\n", text.trim_end_matches('.').replace('<', "&lt;")));
            for choice in argument.get_possible_values().iter().filter(|_| !is_switch) {
                let about = choice.get_help().map(ToString::to_string).unwrap_or_default();
                part.push_str(&format!("- `{}`: {about}\n", choice.get_name()));
            }
            if !is_switch && !argument.get_possible_values().is_empty() {
                part.push('\n');
            }
            let key = if matches!(id, "config" | "api") {
                String::new()
            } else {
                format!(", key `{id}`")
            };
            part.push_str(&format!("Variable `{}`{key}\n\n", variable.to_string_lossy()));
            match sections.iter_mut().find(|(name, _)| *name == section) {
                Some((_, parts)) => parts.push_str(&part),
                None => sections.push((section, part)),
            }
        }
        let mut page = "# Reference of settings\n\nEvery setting of `openapi-mcp serve`, as `openapi-mcp serve --help` describes it. This page is generated from\nthe program. [settings.md](settings.md) explains how settings work together.\n\n".to_owned();
        for (name, parts) in sections {
            page.push_str(&format!("## {name}\n\n{parts}"));
        }
        page.trim_end().to_owned() + "\n"
    }

    #[test]
    fn the_reference_is_as_fresh_as_the_schema() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/flags.md");
        let text = reference();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap_or_default() == text,
            "docs/reference/flags.md is stale: run the tests once with UPDATE=1"
        );
    }
}
