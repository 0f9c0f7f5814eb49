//! Standard error that is not read: it costs log lines, never an answer, a start or a clean end.

use std::fs::File;
use std::io::{BufRead as _, BufReader, PipeReader, pipe};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::json;

use crate::support::http_server::http_request;
use crate::support::raw_session::RawSession;
use crate::support::{call_message, command, petstore, signal, wait, wait_until};

/// A server whose calls all fail, which it logs, and at a level at which it logs more than that.
const TALKATIVE: [&str; 7] = [
    "--base-url",
    "http://127.0.0.1:1",
    "retries: 0",
    "--log-level",
    "debug",
    "--log-format",
    "json",
];
/// `tracing` writes at least this much for each event, with time, level and target as JSON.
const MIN_LINE_BYTES: usize = 100;

fn serve<'a>(spec: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["serve", "--spec", spec], &TALKATIVE[..], more].concat()
}

/// Standard errors of which nothing is ever read. The reader is to be held for as long as the
/// process lives.
fn unread() -> [(&'static str, Stdio, Option<PipeReader>); 3] {
    let (_, closed) = pipe().unwrap();
    let (reader, ignored) = pipe().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    [
        ("closed", closed.into(), None),
        ("full", full.into(), None),
        ("ignored", ignored.into(), Some(reader)),
    ]
}

#[test]
fn p44_over_stdio_calls_are_answered_although_standard_error_is_not_read() {
    let spec = petstore();
    for end in ["EOF", "TERM"] {
        for (kind, stderr, _reader) in unread() {
            let mut session = RawSession::start_logging_to(stderr, &serve(&spec, &[]));
            session.initialize();
            for id in 0..20 {
                session.send_request(
                    id,
                    "tools/call",
                    &json!({"name": "list_pets", "arguments": {}}),
                );
                let answer = session.answer(&json!(id));
                assert_eq!(answer["result"]["isError"], true, "{kind}: {answer}");
            }
            // Where lines pile up, more than a pipe and the queue of lines hold.
            let bytes = if kind == "ignored" { 2 << 20 } else { 64 << 10 };
            for _ in 0..(bytes / MIN_LINE_BYTES / 100) {
                session.send(&b"x\n".repeat(100));
                for _ in 0..100 {
                    assert!(session.receive()["error"].is_object(), "{kind}");
                }
            }
            match end {
                "EOF" => session.stdin = None,
                signal_name => signal(session.pid(), signal_name),
            }
            assert_eq!(wait(&mut session.child), Some(0), "{kind}, {end}");
        }
    }
}

#[test]
fn p44_over_http_calls_are_answered_although_standard_error_is_not_read() {
    let spec = petstore();
    for (kind, stderr, _reader) in unread() {
        // The log cannot say which port was taken.
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        let mut server = command(&serve(&spec, &["--transport", "http", "--bind", &address]));
        let mut server = server.stdout(Stdio::null()).stderr(stderr).spawn().unwrap();
        let request = http_request(
            &address,
            "POST",
            &["Connection: close"],
            &call_message("list_pets", "{}"),
        );
        let mut answer = String::new();
        wait_until("the server does not answer", || {
            answer = exchange(&address, &request).unwrap_or_default();
            !answer.is_empty()
        });
        for _ in 0..300 {
            assert!(answer.contains("\"isError\":true"), "{kind}: {answer}");
            answer = exchange(&address, &request).unwrap();
        }
        signal(server.id(), "TERM");
        assert_eq!(wait(&mut server), Some(0), "{kind}");
    }
}

fn exchange(address: &str, request: &str) -> std::io::Result<String> {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address)?;
    stream.set_read_timeout(Some(crate::support::TIMEOUT))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn p44_commands_do_their_work_although_standard_error_is_not_read() {
    let spec = petstore();
    let call = [
        "call",
        "--spec",
        &spec,
        "--base-url",
        "http://127.0.0.1:1",
        "list_pets",
    ];
    for (args, code) in [
        (&call[..], 1),
        (&["tools", "--spec", &spec, "--format", "json"], 0),
        (&["tools", "--spec", "/nonexistent"], 3),
        (&["tools", "--nonsense"], 2),
        (&["serve", "--spec", "/nonexistent"], 3),
        (&["health", "http://127.0.0.1:1/"], 1),
    ] {
        for (kind, stderr, _reader) in unread() {
            let status = command(args)
                .stdout(Stdio::null())
                .stderr(stderr)
                .status()
                .unwrap();
            assert_eq!(status.code(), Some(code), "{kind}: {args:?}");
        }
    }
}

#[test]
fn dropped_log_lines_are_counted_once_standard_error_is_read_again() {
    let spec = petstore();
    let (reader, ignored) = pipe().unwrap();
    let mut session = RawSession::start_logging_to(ignored.into(), &serve(&spec, &[]));
    session.initialize();
    for _ in 0..((2 << 20) / MIN_LINE_BYTES / 100) {
        session.send(&b"x\n".repeat(100));
        for _ in 0..100 {
            session.receive();
        }
    }
    let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
    let said = lines
        .find(|line| line.contains("standard error was not read: "))
        .unwrap();
    let line: serde_json::Value = serde_json::from_str(&said).unwrap();
    let dropped = line["message"]
        .as_str()
        .unwrap()
        .split(' ')
        .find_map(|word| word.parse::<usize>().ok());
    assert!(dropped.is_some_and(|dropped| dropped > 0), "{said}");
    session.stdin = None;
    drop(lines);
    assert_eq!(wait(&mut session.child), Some(0));
}
