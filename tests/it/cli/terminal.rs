//! The program in a terminal, which `script` (util-linux) provides.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::channel;

use crate::support::{TIMEOUT, Upstream, binary, petstore, reply, wait};

/// A shell command in a terminal of so many columns; nothing if this machine has no `script`.
pub(crate) fn in_terminal(columns: usize, args: &str) -> Option<Command> {
    let line = format!(
        "stty cols {columns} rows 40; '{}' {args}",
        binary().display()
    );
    let is_there = Command::new("script")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    let mut command = Command::new("script");
    command
        .args(["-qec", &line, "/dev/null"])
        .stderr(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OPENAPI_MCP_")) {
        command.env_remove(name);
    }
    is_there.then_some(command)
}

/// Reads until those words are there; gives what was read.
pub(crate) fn read_until(output: &mut impl std::io::Read, words: &str) -> String {
    let mut shown = Vec::new();
    let mut bytes = [0; 1024];
    while !String::from_utf8_lossy(&shown).contains(words) {
        let count = output.read(&mut bytes).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&shown));
        shown.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&shown).into_owned()
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
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 80),
        "{narrow}"
    );
    let rows = narrow.lines().filter(|line| line.contains(" /")).count();
    assert!(
        rows == 20 && narrow.contains("RO") && !narrow.contains("TITLE"),
        "{narrow}"
    );
    assert!(
        wide.contains("READ-ONLY") && wide.contains("TITLE"),
        "{wide}"
    );
}

#[test]
fn a_server_over_stdio_says_in_a_terminal_what_it_waits_for() {
    let Some(mut command) = in_terminal(80, &format!("serve --mock --spec '{}'", petstore()))
    else {
        return;
    };
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    assert!(lines.any(|line| line.contains("waiting for an MCP client on standard input")));
    drop(child.stdin.take());
    child.kill().unwrap();
    wait(&mut child);
}

#[test]
fn a_document_that_takes_long_shows_a_spinner_in_a_terminal() {
    let (answer, answered) = channel::<()>();
    let answered = Mutex::new(answered);
    let document = std::fs::read(petstore()).unwrap();
    let site = Upstream::start(Box::new(move |_| {
        let _ = answered.lock().unwrap().recv_timeout(TIMEOUT);
        reply(200, &["Content-Type: application/yaml"], &document)
    }));
    let Some(mut command) = in_terminal(200, &format!("tools --spec {}/petstore.yaml", site.url))
    else {
        return;
    };
    let mut child = command
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    // The document comes only after the spinner.
    read_until(&mut output, "reading the document");
    answer.send(()).unwrap();
    read_until(&mut output, "20 tools, 9 of them read-only");
    output.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(wait(&mut child), Some(0));
}
