//! Help that a person can read.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{command, project, run, stdout};

/// The flags below each heading of a help text.
fn flags_by_heading(help: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in help.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            name.clone_into(&mut heading);
        }
        // Descriptions are indented further.
        let flag = line
            .strip_prefix("      --")
            .or_else(|| line.strip_prefix("  -h, --"));
        if let Some(flag) = flag {
            let is_end = |character: char| character != '-' && !character.is_ascii_alphanumeric();
            let flag = flag.split(is_end).next().unwrap();
            found
                .entry(heading.clone())
                .or_default()
                .insert(flag.to_owned());
        }
    }
    found
}

/// The keys of the configuration file below each of its headings.
fn keys_by_heading() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(project("config/openapi-mcp.yaml")).unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# --- ") {
            rest.trim_end_matches(['-', ' ']).clone_into(&mut heading);
        } else if let Some((key, _)) = line
            .strip_prefix("# ")
            .and_then(|line| line.split_once(": "))
            && key
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            && !heading.is_empty()
        {
            found
                .entry(heading.clone())
                .or_default()
                .insert(key.replace('_', "-"));
        }
    }
    found
}

#[test]
fn long_help_has_the_sections_of_the_configuration_file() {
    let help = flags_by_heading(&stdout(&run(&["serve", "--help"])));
    for (heading, mut keys) in keys_by_heading() {
        // These have no flags.
        keys.retain(|key| {
            ![
                "about",
                "access",
                "auth",
                "auth-tokens",
                "openai-apps-challenge",
                "overrides",
                "tenants",
            ]
            .contains(&key.as_str())
        });
        // The file names all at once.
        if keys.remove("apis") {
            keys.insert("api".to_owned());
        }
        assert_eq!(help.get(&heading), Some(&keys), "{heading}");
    }
    let other: Vec<&str> = help["Options"].iter().map(String::as_str).collect();
    assert_eq!(other, ["config", "help"]);
}

#[test]
fn short_help_of_serve_fits_a_screen_and_names_what_is_needed_first() {
    let help = stdout(
        &command(&["serve", "-h"])
            .env("COLUMNS", "80")
            .output()
            .unwrap(),
    );
    assert!(help.lines().count() < 40, "{help}");
    assert!(
        help.lines().all(|line| line.chars().count() <= 80) && !help.contains("[env"),
        "{help}"
    );
    for flag in [
        "spec",
        "base-url",
        "header-env",
        "mock",
        "read-only",
        "tool-include",
        "transport",
        "bind",
        "allow-host",
        "auth-token-env",
        "confirm",
        "config",
    ] {
        assert!(help.contains(&format!("--{flag}")), "{flag}: {help}");
    }
}

#[test]
fn short_help_of_every_command_fits_a_screen() {
    let help_of = |name: &str| {
        let args: Vec<&str> = [name, "-h"]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        stdout(&command(&args).env("COLUMNS", "80").output().unwrap())
    };
    let whole = help_of("");
    let commands = whole
        .split("Commands:\n")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let commands: Vec<&str> = commands
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(
        commands.len() > 12 && commands.contains(&"install"),
        "{commands:?}"
    );
    for name in commands
        .into_iter()
        .filter(|name| *name != "help")
        .chain([""])
    {
        let help = help_of(name);
        assert!(
            help.lines().count() < 40,
            "{name}: {} lines\n{help}",
            help.lines().count()
        );
        // clap does not wrap the line of the usage.
        let mut lines = help.lines().filter(|line| !line.starts_with("Usage:"));
        assert!(
            lines.all(|line| line.chars().count() <= 80),
            "{name}: {help}"
        );
    }
    let help = help_of("install");
    for flag in ["client", "spec", "write", "print", "list", "url"] {
        assert!(help.contains(&format!("--{flag}")), "{flag}: {help}");
    }
    assert!(!help.contains("--bind"), "{help}");
}

#[test]
fn help_has_examples_credentials_and_variables() {
    for name in ["serve", "tools", "check", "call"] {
        for flag in ["-h", "--help"] {
            let help = stdout(&run(&[name, flag]));
            let examples = help
                .matches(&format!("\n  openapi-mcp {name} --spec "))
                .count();
            assert_eq!(examples, 3, "{help}");
            assert!(
                help.contains("--base-url is OPENAPI_MCP_BASE_URL"),
                "{help}"
            );
            assert_eq!(help.contains("env:"), flag == "--help", "{help}");
            let names_credentials = help.contains("OPENAPI_MCP_AUTH_<SCHEME>");
            assert_eq!(
                names_credentials,
                ["serve", "call"].contains(&name),
                "{help}"
            );
        }
    }
}

#[test]
fn the_help_of_install_fits_into_a_few_screens() {
    let help = stdout(&run(&["install", "--help"]));
    assert!(help.lines().count() <= 150, "{}", help.lines().count());
    assert!(
        help.contains("`openapi-mcp serve --help` lists them"),
        "{help}"
    );
}

#[test]
fn the_demo_names_the_program_as_it_was_started() {
    let shown = stdout(&run(&["demo"]));
    let line = format!(
        "  {} tools --spec FILE ",
        crate::support::binary().display()
    );
    assert!(shown.contains(&line), "{shown}");
}
