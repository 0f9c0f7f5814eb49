//! The program in a terminal, which `script` (util-linux) provides.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::support::{binary, petstore, wait};

/// A shell command in a terminal of so many columns; nothing where this machine has no `script`.
fn in_terminal(columns: usize, args: &str) -> Option<Command> {
    let line = format!("stty cols {columns} rows 40; '{}' {args}", binary().display());
    let is_there = Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok();
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).stderr(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OPENAPI_MCP_")) {
        command.env_remove(name);
    }
    is_there.then_some(command)
}

#[test]
fn tools_have_one_line_each_in_a_narrow_terminal() {
    let list = |columns| {
        let mut command = in_terminal(columns, &format!("tools --spec '{}'", petstore()))?;
        let output = command.stdin(Stdio::null()).output().unwrap();
        Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
    };
    let (Some(narrow), Some(wide)) = (list(80), list(200)) else {
        return;
    };
    assert!(narrow.lines().all(|line| line.chars().count() <= 80), "{narrow}");
    let rows = narrow.lines().filter(|line| line.contains(" /")).count();
    assert!(rows == 20 && narrow.contains("RO") && !narrow.contains("TITLE"), "{narrow}");
    assert!(wide.contains("READ-ONLY") && wide.contains("TITLE"), "{wide}");
}

#[test]
fn a_server_over_stdio_says_in_a_terminal_what_it_waits_for() {
    let Some(mut command) = in_terminal(80, &format!("serve --mock --spec '{}'", petstore())) else {
        return;
    };
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("waiting for an MCP client on standard input")));
    drop(child.stdin.take());
    child.kill().unwrap();
    wait(&mut child);
}
