//! Surroundings of `install`: in WSL, over SSH, as root, in a terminal, beside clients that are
//! there or not.

#[cfg(target_os = "linux")]
use std::{
    io::Write as _,
    process::{Child, Stdio},
};

use super::{Home, read};
#[cfg(target_os = "linux")]
use crate::cli::terminal::read_until;
use crate::support::{petstore, stderr, stdout};

#[test]
fn the_clients_of_this_machine_are_listed() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}");
    std::fs::create_dir_all(home.path(".codex")).unwrap();
    let output = home.run(&["install", "--list"], &[]);
    let text = stdout(&output);
    assert_eq!(text.lines().count(), 11, "{text}");
    for expected in [
        "cursor          found       ",
        "codex           found       ",
        "zed             not found   ",
        "/.codex/config.toml (not there yet)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let program = home.write("bin/zed", "");
    let folder = program.parent().unwrap().display().to_string();
    let text = stdout(&home.run(&["install", "--list"], &[("PATH", &folder)]));
    let line = text.lines().find(|line| line.starts_with("zed")).unwrap();
    assert!(
        line.contains(" found ") && line.ends_with(&format!("(not there yet), {folder}/zed")),
        "{line}"
    );
    let output = home.run(&["install", "--list", "--scope", "project"], &[]);
    assert!(
        stdout(&output).contains("windsurf        -           no configuration per project"),
        "{}",
        stdout(&output)
    );
}

#[cfg(target_os = "linux")]
#[test]
fn in_wsl_a_client_on_windows_starts_the_server_through_wsl_and_its_file_is_not_written() {
    let home = Home::new();
    let spec = petstore();
    let wsl = [("WSL_DISTRO_NAME", "Debian")];
    for (client, file, more) in [
        (
            "claude-desktop",
            "%APPDATA%\\Claude\\claude_desktop_config.json",
            &[][..],
        ),
        ("vscode", "%APPDATA%\\Code\\User\\mcp.json", &[]),
        ("cursor", "%USERPROFILE%\\.cursor\\mcp.json", &[]),
        (
            "codex",
            "/mnt/c/Users/me/.codex/config.toml",
            &["--config-path", "/mnt/c/Users/me/.codex/config.toml"],
        ),
    ] {
        let mut args = vec!["install", "--client", client, "--spec", &spec, "--print"];
        args.extend(more);
        let output = home.run(&args, &wsl);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        let text = stdout(&output);
        assert!(
            stderr(&output).contains(&format!("put this into {file}:")),
            "{client}: {}",
            stderr(&output)
        );
        assert!(
            text.contains("\"wsl.exe\"")
                && text.contains("\"--exec\"")
                && text.contains("\"Debian\""),
            "{client}: {text}"
        );
        assert!(text.contains(&spec), "{client}: {text}");
        // Windows hands over only the variables that this names.
        assert_eq!(
            text.contains("WSLENV"),
            client != "claude-desktop",
            "{client}: {text}"
        );
        assert!(
            client == "claude-desktop" || text.contains("OPENAPI_MCP_AUTH_API_KEY/u"),
            "{client}: {text}"
        );
        args.retain(|argument| *argument != "--print");
        args.push("--write");
        let output = home.run(&args, &wsl);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{client}: {}",
            stdout(&output)
        );
        assert!(
            stderr(&output).contains("the client is on Windows"),
            "{client}: {}",
            stderr(&output)
        );
    }
    // One that is installed in WSL is a client of Linux.
    std::fs::create_dir_all(home.path(".cursor")).unwrap();
    std::fs::create_dir_all(home.path(".codex")).unwrap();
    for client in ["cursor", "codex"] {
        let output = home.run(
            &["install", "--client", client, "--spec", &spec, "--write"],
            &wsl,
        );
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
    }
    assert!(!read(&home.path(".cursor/mcp.json")).contains("wsl.exe"));
}

#[test]
fn files_that_are_not_the_users_here_are_not_written() {
    let home = Home::new();
    std::fs::create_dir_all(home.path(".config/Code/User")).unwrap();
    std::fs::create_dir_all(home.path(".cursor")).unwrap();
    let spec = petstore();
    for (client, variables, words) in [
        (
            "vscode",
            &[("VSCODE_IPC_HOOK_CLI", "/run/vscode.sock")][..],
            "is connected to this machine from another one",
        ),
        (
            "cursor",
            &[("SUDO_USER", "ann"), ("USER", "root")],
            "sudo would write the settings of root",
        ),
        (
            "goose",
            &[],
            "only printed because its layout would be lost",
        ),
    ] {
        let args = ["install", "--client", client, "--spec", &spec, "--write"];
        let output = home.run(&args, variables);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{client}: {}",
            stdout(&output)
        );
        assert!(
            stderr(&output).contains(words),
            "{client}: {}",
            stderr(&output)
        );
        let output = home.run(&args[..args.len() - 1], variables);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{client}: {}",
            stderr(&output)
        );
        assert!(
            stdout(&output).contains("serve"),
            "{client}: {}",
            stdout(&output)
        );
    }
    assert_eq!(std::fs::read_dir(home.path(".cursor")).unwrap().count(), 0);
}

#[test]
fn without_write_nothing_changes_and_only_what_can_be_pasted_is_on_standard_output() {
    let home = Home::new();
    let path = home.write(".cursor/mcp.json", "{}\n");
    let output = home.install("cursor", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str::<serde_json::Value>(&stdout(&output)).unwrap();
    assert_eq!(read(&path), "{}\n");
    assert!(home.install("cursor", &["--write"]).status.success());
    let written = read(&path);
    let output = home.run(
        &["uninstall", "--client", "cursor", "--name", "petstore"],
        &[],
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "");
    assert!(
        stderr(&output).contains('-')
            && stderr(&output).contains("nothing was changed; --write does it"),
        "{}",
        stderr(&output)
    );
    assert_eq!(read(&path), written);
}

#[test]
fn a_token_over_http_beyond_this_machine_is_a_warning() {
    let home = Home::new();
    for (url, warns) in [
        ("http://mcp.example/mcp", true),
        ("http://127.0.0.1:8080/mcp", false),
        ("http://localhost/mcp", false),
        ("https://mcp.example/mcp", false),
    ] {
        let args = [
            "install",
            "--client",
            "cursor",
            "--url",
            url,
            "--url-token-env",
            "PETS",
            "--print",
        ];
        let output = home.run(&args, &[]);
        assert_eq!(
            stderr(&output).contains("without encryption"),
            warns,
            "{url}: {}",
            stderr(&output)
        );
    }
}

/// Starts the installation into Cursor in a terminal; nothing if this machine has no terminal.
#[cfg(target_os = "linux")]
fn install_in_terminal(home: &Home) -> Option<Child> {
    let mut command = crate::cli::terminal::in_terminal(
        200,
        &format!("install --client cursor --spec '{}'", petstore()),
    )?;
    command
        .env("HOME", home.path(""))
        .env_remove("XDG_CONFIG_HOME");
    Some(
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    )
}

#[cfg(target_os = "linux")]
#[test]
fn on_a_terminal_the_change_is_shown_and_asked_about() {
    let home = Home::new();
    let path = home.write(
        ".cursor/mcp.json",
        "{ \"mcpServers\": { \"other\": { \"command\": \"x\" } } }\n",
    );
    let before = read(&path);
    for (answer, code) in [("n", 1), ("", 1), ("y", 0)] {
        let Some(mut child) = install_in_terminal(&home) else {
            return;
        };
        writeln!(child.stdin.take().unwrap(), "{answer}").unwrap();
        let output = child.wait_with_output().unwrap();
        let shown = stdout(&output);
        assert_eq!(output.status.code(), Some(code), "{answer}: {shown}");
        assert!(
            shown.contains("petstore") && shown.contains("[y/N]"),
            "{answer}: {shown}"
        );
        assert_eq!(read(&path) != before, answer == "y", "{answer}: {shown}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_client_writes_while_the_question_is_open_is_kept() {
    let home = Home::new();
    let path = home.write(".cursor/mcp.json", "{ \"mcpServers\": {} }\n");
    let Some(mut child) = install_in_terminal(&home) else {
        return;
    };
    read_until(child.stdout.as_mut().unwrap(), "[y/N]");
    std::fs::write(
        &path,
        "{ \"mcpServers\": { \"new\": { \"command\": \"x\" } } }\n",
    )
    .unwrap();
    writeln!(child.stdin.take().unwrap(), "y").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let after: serde_json::Value = serde_json::from_str(&read(&path)).unwrap();
    assert_eq!(after["mcpServers"]["new"]["command"], "x", "{after}");
    assert_eq!(
        after["mcpServers"]["petstore"]["args"][0], "serve",
        "{after}"
    );
}

#[test]
fn the_note_about_a_dock_concerns_clients_with_a_window() {
    let home = Home::new();
    for (client, is_noted) in [("cursor", true), ("codex", false), ("gemini", false)] {
        let said = stderr(&home.install(client, &["--print"]));
        assert_eq!(said.contains("from a dock or a menu"), is_noted, "{said}");
    }
}
