//! Two binaries get the same messages: what they answer and what they ask of the API is the same,
//! but for what is wanted to differ. `OPENAPI_MCP_ORACLE` names the other binary; without it, the
//! test says so and compares nothing.

#[path = "messages.rs"]
mod messages;
mod servers {
    pub const TOKEN: &str = "a-token-of-clients-0123456789";
}

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use self::messages::{any_message, any_request};
use self::servers::TOKEN;
use crate::support::{SpecFile, TIMEOUT, Upstream, binary, reply};

const DOCUMENT: &str = r#"{"openapi":"3.1.0","info":{"title":"T","version":"1"},"paths":{
  "/items/{id}":{
    "get":{"operationId":"get_item","parameters":[
      {"name":"id","in":"path","required":true,"schema":{"type":"string"}},
      {"name":"page","in":"query","schema":{"type":"integer"}},
      {"name":"q","in":"query","schema":{"type":"array","items":{"type":"string"}}}]},
    "delete":{"operationId":"delete_item","parameters":[{"name":"id","in":"path","required":true,"schema":{"type":"string"}}]}},
  "/items":{"post":{"operationId":"add_item","requestBody":{"required":true,"content":{"application/json":{"schema":{"type":"object",
    "properties":{"n":{"type":"number"},"s":{"type":"string"}},"required":["n"]}}}}}}}}"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// An API that answers by the last part of the path.
fn api() -> Upstream {
    Upstream::start(Box::new(|request| {
        let json = |body: &str| reply(200, &["Content-Type: application/json"], body.as_bytes());
        let id = request
            .path()
            .split('?')
            .next()
            .unwrap_or_default()
            .rsplit('/')
            .next()
            .unwrap_or_default();
        match id {
            "pretty" => json("{\n  \"a\" : [ 1.50, 2 ],\n  \"b\": \"x\\ny\"\n}\n"),
            "twice" => json(r#"{"a":1,"b":{"c":1,"c":2},"a":3}"#),
            "escapes" => json(r#"{"\u0061":"\u00e9\/\ud83d\ude00","b":"é\u001f"}"#),
            "half" => json(r#"{"a":"\ud800"}"#),
            "secret" => json(r#"{"a":"a-s3cret-value","b":["x a-s3cret\u002dvalue"]}"#),
            "list" => json("[1,2,{\"a\":null}]"),
            "number" => json("1E400"),
            "broken" => json("{\"a\":"),
            "reserved" => json(r#"{"$serde_json::private::Number":"1"}"#),
            "more" => reply(
                200,
                &[
                    "Content-Type: application/json",
                    "Link: </items/more?page=2>; rel=\"next\"",
                    "ETag: \"e\"",
                ],
                b"{\"next_page\":2}",
            ),
            "long" => json(&format!("[{}0]", "{\"a\":\"bcdefgh\"},".repeat(9000))),
            "deep" => json(&format!("{}{}", "[".repeat(150), "]".repeat(150))),
            "text" => reply(200, &["Content-Type: text/plain"], b"plain\ntext"),
            "image" => reply(200, &["Content-Type: image/png"], b"\x01PNG"),
            "missing" => reply(
                404,
                &["Content-Type: application/json"],
                b"{\"error\":\"no\"}",
            ),
            "bad" => reply(
                400,
                &["Content-Type: application/json"],
                b"{\"error\":\"bad\"}",
            ),
            "redirect" => reply(302, &["Location: /elsewhere"], b""),
            _ => json(&format!(
                "{{\"id\":\"{}\",\"tags\":[{{\"a\":1}}]}}",
                id.replace(['"', '\\'], "")
            )),
        }
    }))
}

/// One of the two binaries with an API of its own.
struct Side {
    program: String,
    spec: SpecFile,
    upstream: Upstream,
    settings: Vec<&'static str>,
}

impl Side {
    #[expect(clippy::print_stdout, reason = "what is skipped is said")]
    fn both(settings: &[&'static str]) -> Option<[Self; 2]> {
        let Some(oracle) = std::env::var("OPENAPI_MCP_ORACLE").ok() else {
            println!("skipped: OPENAPI_MCP_ORACLE does not name another binary");
            return None;
        };
        Some(
            [oracle, binary().display().to_string()].map(|program| Self {
                program,
                spec: SpecFile::new(DOCUMENT),
                upstream: api(),
                settings: settings.to_vec(),
            }),
        )
    }

    fn command(&self, more: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().args([
            "serve",
            "--spec",
            self.spec.path(),
            "--base-url",
            &self.upstream.url,
        ]);
        command
            .args(["--annotation-policy", "method"])
            .args(&self.settings)
            .args(more);
        command
    }

    /// Returns the requests to the API, without the parts that differ by the port.
    fn asked(&self) -> Vec<String> {
        let without_port = |text: String| text.replace(self.upstream.host(), "HOST");
        let asked = self.upstream.take_all().into_iter().map(|mut received| {
            received.headers.sort();
            format!(
                "{}\n{}\n{}",
                received.line,
                received.headers.join("\n"),
                String::from_utf8_lossy(&received.body)
            )
        });
        asked.map(without_port).collect()
    }

    /// All lines that are answered to lines of standard input, in the order of their texts.
    fn answers(&self, lines: &[&str]) -> Vec<String> {
        let mut child = self
            .command(&[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin
            .write_all(format!("{}\n", lines.join("\n")).as_bytes())
            .unwrap();
        drop(stdin);
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        child.wait().unwrap();
        let mut answers: Vec<String> = text.lines().map(|line| wanted(line.to_owned())).collect();
        answers.sort();
        answers
    }
}

/// A server over HTTP.
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(side: &Side) -> Self {
        let mut command = side.command(&["--transport", "http", "--bind", "127.0.0.1:0"]);
        let mut child = command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let address = lines
            .find_map(|line| {
                Some(
                    line.split_once("listening on http://")?
                        .1
                        .trim_end_matches("/mcp")
                        .to_owned(),
                )
            })
            .unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// The answer without its date: the lines of its head in order, and the body.
    fn exchange(&self, request: &str) -> (Vec<String>, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        let request =
            request
                .replace("HOST", &self.address)
                .replacen("\r\n", "\r\nConnection: close\r\n", 1);
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        // A refusal in words says that it is text.
        let varies = ["date:", "content-length:", "content-type: text/plain"];
        let is_kept = |line: &&str| !varies.iter().any(|name| line.starts_with(name));
        let mut head: Vec<String> = head.lines().filter(is_kept).map(str::to_owned).collect();
        head.sort();
        (head, wanted(body.to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer with what is wanted to differ made the same.
fn wanted(answer: String) -> String {
    let Ok(mut message) = serde_json::from_str::<Value>(&answer) else {
        return answer;
    };
    // The order of members is the same, and so is everything that is not named here.
    if let Some(message) = message.pointer_mut("/error/message") {
        *message = "…".into();
    }
    // Refusals name the server as well.
    if message.pointer("/result/isError") == Some(&true.into())
        && let Some(Value::Object(result)) = message.pointer_mut("/result")
    {
        result.remove("_meta");
    }
    message.to_string()
}

/// Returns true if our answer to a message is one that is wanted to differ.
fn differs_on_purpose(message: &str, oracle: &str, ours: &str) -> bool {
    let names = |answer: &str, code: &str| answer.contains(&format!("\"code\":{code}"));
    // An argument is there once for every tool; each request is answered, and its identifier as a
    // number; metadata are an object.
    (message.contains(r#""id":"x","id":"y""#) && names(ours, "-32600"))
        || (message.contains(r#""id":null"#) && names(ours, "-32600"))
        || message.contains(r#""id":-0"#)
        || message.contains(r#""id":1e1"#)
        // A mark is passed over in both transports, and the version is named once.
        || message.contains('\u{feff}')
        || message.matches("MCP-Protocol-Version").count() > 1
        || (message.contains(r#""_meta":[]"#) && !names(ours, "-32600"))
        // 2026-07-28 has no `ping`, at the beginning of a connection neither.
        || (message.contains(r#""ping""#) && names(ours, "-3260"))
        // Headers are judged in one order, with sessions and without, and what a client accepts
        // after its message.
        || (names(oracle, "-32602") && names(ours, "-32020"))
        || (oracle.contains("406 Not Acceptable") && names(ours, "-32600"))
        // Only results of 2026-07-28 name the server.
        || (message.contains(r#"protocolVersion":"2025-11-25""#) && oracle.contains("serverInfo"))
}

fn compare_over_http(settings: &[&'static str], cases: u32) {
    let Some(sides) = Side::both(settings) else {
        return;
    };
    let servers = sides.each_ref().map(Server::start);
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let compared = TestRunner::new(config).run(&any_request(), |request| {
        let [oracle, ours] =
            [0, 1].map(|side| (servers[side].exchange(&request), sides[side].asked()));
        if !differs_on_purpose(
            &request,
            &format!("{oracle:?}").replace('\\', ""),
            &format!("{ours:?}").replace('\\', ""),
        ) {
            prop_assert_eq!(oracle, ours);
        }
        Ok(())
    });
    compared.unwrap();
}

fn compare_over_stdio(settings: &[&'static str], beginning: &[&str], cases: u32) {
    let Some(sides) = Side::both(settings) else {
        return;
    };
    let config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let compared = TestRunner::new(config).run(&any_message(), |(message, _)| {
        prop_assume!(!message.contains('\n'));
        let lines = [beginning, &[message.as_str()]].concat();
        let [oracle, ours] = sides
            .each_ref()
            .map(|side| (side.answers(&lines), side.asked()));
        if !differs_on_purpose(&message, &oracle.0.concat(), &ours.0.concat()) {
            prop_assert_eq!(oracle, ours);
        }
        Ok(())
    });
    compared.unwrap();
}

#[test]
fn two_binaries_answer_and_ask_the_same_over_http() {
    compare_over_http(&[], 2_000);
}

#[test]
fn two_binaries_answer_and_ask_the_same_over_http_where_clients_authenticate() {
    // Only its own variable is handed on to the processes.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let file: &'static str = Box::leak(file.display().to_string().into_boxed_str());
    compare_over_http(&["--auth-token-file", file], 1_000);
}

#[test]
fn two_binaries_answer_and_ask_the_same_over_http_where_a_person_is_asked() {
    compare_over_http(&["--confirm", "destructive"], 1_000);
}

#[test]
fn two_binaries_answer_and_ask_the_same_over_http_in_search_mode() {
    compare_over_http(&["--tools", "search"], 1_000);
}

#[test]
fn two_binaries_answer_and_ask_the_same_over_stdio() {
    compare_over_stdio(&[], &[INITIALIZE, INITIALIZED], 300);
    compare_over_stdio(
        &["--confirm", "destructive"],
        &[INITIALIZE, INITIALIZED],
        100,
    );
    compare_over_stdio(&["--tools", "search"], &[INITIALIZE, INITIALIZED], 100);
}

#[test]
fn two_binaries_answer_and_ask_the_same_over_stdio_without_a_handshake() {
    compare_over_stdio(&[], &[], 300);
}
