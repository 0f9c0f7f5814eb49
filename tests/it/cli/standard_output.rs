//! Standard output that cannot be written: a lost result does not look like success. A reader that
//! leaves is not an error.

use std::fs::File;
use std::io::{Read as _, pipe};
use std::process::Stdio;

use crate::support::raw_session::RawSession;
use crate::support::{command, petstore, stderr};

fn commands(spec: &str) -> [Vec<&str>; 6] {
    [
        vec!["tools", "--spec", spec],
        vec!["check", "--spec", spec],
        vec!["call", "--spec", spec, "--mock", "list_pets"],
        vec!["call", "--spec", spec, "--dry-run", "list_pets"],
        vec!["serve", "--help"],
        vec!["--version"],
    ]
}

#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let spec = petstore();
    for args in commands(&spec) {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = command(&args)
            .stdout(full)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?}: {said}");
        assert!(
            said.contains("cannot be written to standard output: No space left"),
            "{args:?}: {said}"
        );
    }
}

#[test]
fn a_reader_that_leaves_ends_a_command_quietly() {
    let spec = petstore();
    for args in commands(&spec) {
        let (_, closed) = pipe().unwrap();
        let output = command(&args)
            .stdout(closed)
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert_eq!(
            (output.status.code(), stderr(&output).as_str()),
            (Some(0), ""),
            "{args:?}"
        );
    }
}

#[test]
fn a_server_over_stdio_that_cannot_answer_says_so() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut server = command(&["serve", "--spec", &petstore(), "--mock"]);
    let mut child = server
        .stdin(Stdio::piped())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut session = RawSession {
        stdin: child.stdin.take(),
        stdout: None,
        child,
    };
    session.send_request(1, "ping", &serde_json::json!({}));
    assert_eq!(crate::support::wait(&mut session.child), Some(1));
    let mut said = String::new();
    session
        .child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert!(
        said.contains("error: serving failed: standard output cannot be written: No space left"),
        "{said}"
    );
}
