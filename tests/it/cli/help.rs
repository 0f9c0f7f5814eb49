//! Help that a person can read.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{command, project, run, stderr, stdout};

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
fn long_help_is_short_and_has_the_sections_of_the_configuration_file() {
    let text = stdout(&run(&["serve", "--help"]));
    assert!(text.lines().count() <= 250, "{}", text.lines().count());
    let mut help = flags_by_heading(&text);
    let other = help.remove("Options").unwrap();
    assert_eq!(Vec::from_iter(other), ["config", "help"]);
    // `--config` is one of the 52 as well.
    assert!(help.values().map(BTreeSet::len).sum::<usize>() < 52);
    let keys = keys_by_heading();
    for (heading, mut flags) in help {
        // The file names all at once.
        if flags.remove("api") {
            flags.insert("apis".to_owned());
        }
        assert!(flags.is_subset(&keys[&heading]), "{heading}: {flags:?}");
    }
}

/// The settings that are keys alone, by the names of the flags that they lack.
fn keys_alone() -> Vec<String> {
    let flags = flags_by_heading(&stdout(&run(&["serve", "--help"])));
    let values_that_no_flag_holds = [
        "about",
        "access",
        "apis",
        "auth",
        "auth-tokens",
        "openai-apps-challenge",
        "overrides",
        "tenants",
    ];
    let has_no_flag = |key: &String| {
        !flags.values().any(|flags| flags.contains(key))
            && !values_that_no_flag_holds.contains(&key.as_str())
    };
    let keys = keys_by_heading().into_values().flatten();
    keys.filter(has_no_flag).collect()
}

#[test]
fn a_flag_or_a_variable_of_a_setting_that_is_a_key_alone_is_refused() {
    let keys = keys_alone();
    assert!(keys.len() > 40, "{keys:?}");
    let refusal = |name: &str, key: &str| {
        let key = key.replace('-', "_");
        format!("error: `{name}` is a key of the configuration file: set `{key}` there")
    };
    let flags: Vec<String> = keys.iter().map(|key| format!("--{key}=hunter2")).collect();
    let mut args = vec!["serve"];
    args.extend(flags.iter().map(String::as_str));
    let output = run(&args);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let variable = |key: &str| format!("OPENAPI_MCP_{}", key.replace('-', "_").to_uppercase());
    let variables = keys.iter().map(|key| (variable(key), "hunter2"));
    let output = command(&["serve"]).envs(variables).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = said + &stderr(&output);
    for key in &keys {
        for name in [format!("--{key}"), variable(key)] {
            assert!(said.contains(&refusal(&name, key)), "{name}: {said}");
        }
    }
    assert!(!said.contains("hunter2"), "{said}");
    for name in ["tools", "call", "check", "install", "bundle"] {
        // The tool that `call` needs.
        let tool: &[&str] = if name == "call" { &["list_pets"] } else { &[] };
        let output = run(&[&[name, "--breaker-pause", "60"], tool].concat());
        let expected = refusal("--breaker-pause", "breaker-pause");
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
        // A setting of the server, which this command does not have.
        let said = stderr(&run(&[name, "--page", "off"]));
        assert!(
            said.contains("`--page` is a key of the configuration file: set `page` there"),
            "{name}: {said}"
        );
    }
    // Completions and the manual do not offer them.
    for args in [
        ["completions", "bash"],
        ["completions", "zsh"],
        ["man", "serve"],
    ] {
        let text = stdout(&run(&args));
        assert!(!text.contains("breaker"), "{args:?}");
        assert!(text.contains("spec"), "{args:?}");
    }
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
            assert!(!help.contains("env:"), "{help}");
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
