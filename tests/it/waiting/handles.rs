//! Handles of operations that were not done in time, and `wait_operation`, which goes on with them.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::http::audit::Log;
use crate::support::{
    HttpServer, Received, Session, SpecFile, Upstream, call_message, command, memory, peak_memory,
    reply, run, signal, stderr, stdout, text, wait_until,
};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
/// The handle comes after the first reply.
const AT_ONCE: &[&str] = &["--timeout", "2.1"];

fn spec() -> SpecFile {
    let later = json!({"202": {"description": "later", "headers": {"Location": {"schema": {"type": "string"}}}}});
    SpecFile::with_paths(&json!({
        "/exports": {"post": {"operationId": "export", "responses": later}},
        "/report": {"get": {"operationId": "report", "responses": later}},
        "/plain": {"get": {"operationId": "plain", "responses": {"200": {"description": "now"}}}},
    }))
}

/// An API whose operations are done once they were asked for so often.
fn slow(polls: usize) -> Upstream {
    let asked = AtomicUsize::new(0);
    Upstream::start(Box::new(move |request| answer(request, &asked, polls)))
}

fn answer(request: &Received, asked: &AtomicUsize, polls: usize) -> Vec<u8> {
    const JSON: &str = "Content-Type: application/json";
    match request.path() {
        "/plain" => reply(200, &[JSON], b"{\"plain\":true}"),
        "/exports" | "/report" => {
            reply(202, &["Location: /jobs/7", JSON], b"{\"state\":\"queued\"}")
        }
        _ if asked.fetch_add(1, SeqCst) < polls => reply(200, &[JSON], b"{\"state\":\"working\"}"),
        _ => reply(200, &[JSON], b"{\"rows\":3}"),
    }
}

fn handle_in(text: &str) -> String {
    let (_, rest) = text
        .split_once("handle: ")
        .unwrap_or_else(|| panic!("there is no handle in {text}"));
    let is_part =
        |character: &char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    rest.chars().take_while(is_part).collect()
}

fn tool_named<'t>(tools: &'t [Value], name: &str) -> Option<&'t Value> {
    tools.iter().find(|tool| tool["name"] == name)
}

#[test]
fn a_handle_goes_on_as_often_as_it_is_given_and_the_request_is_sent_once() {
    let (spec, upstream) = (spec(), slow(1));
    let mut session = Session::serving(&spec, &upstream, AT_ONCE);
    let tools = session.tools();
    let tool = tool_named(&tools, "wait_operation").unwrap();
    assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    let begun = session.call("export", &json!({}));
    assert!(
        text(&begun).contains("queued") && text(&begun).contains("Do not start it again"),
        "{begun}"
    );
    let handle = handle_in(text(&begun));
    assert!(handle.len() <= 4096);
    let look = session.call("wait_operation", &json!({"handle": handle, "wait": false}));
    assert!(text(&look).contains("working"), "{look}");
    let next = handle_in(text(&look));
    for handle in [&handle, &next, &handle] {
        let done = session.call("wait_operation", &json!({"handle": handle, "wait": false}));
        assert!(
            text(&done).contains("\"rows\":3") && done["isError"] == false,
            "{done}"
        );
    }
    let received = upstream.take_all();
    assert_eq!(
        received
            .iter()
            .filter(|request| request.line.starts_with("POST"))
            .count(),
        1
    );
}

#[test]
fn a_handle_goes_on_where_a_rule_sets_an_argument_and_the_call_gave_a_required_one() {
    let upstream = slow(0);
    let parameters = json!([
        {"name": "X-Format", "in": "header", "required": true, "schema": {"type": "string"}},
        {"name": "X-Version", "in": "header", "required": true, "schema": {"type": "string"}},
    ]);
    let operation = json!({"operationId": "export", "parameters": parameters, "responses": {"202": {"description": "later", "headers": {"operation-location": {}}}}});
    let spec = SpecFile::with_paths(&json!({ "/exports": { "post": operation } }));
    let rule = json!({"match": {"operation": "export"}, "arguments": {"header:X-Version": {"value": "2"}}});
    let config = SpecFile::new(&json!({ "overrides": [rule] }).to_string());
    let flags = [&["--config", config.path()], AT_ONCE].concat();
    let mut session = Session::serving(&spec, &upstream, &flags);
    let begun = session.call("export", &json!({"X-Format": "csv"}));
    let done = session.call(
        "wait_operation",
        &json!({"handle": handle_in(text(&begun)), "wait": false}),
    );
    assert!(
        text(&done).contains("\"rows\":3") && done["isError"] == false,
        "{done}"
    );
    let received = upstream.take_all();
    assert!(
        received
            .iter()
            .all(|request| request.header("x-version") == Some("2")),
        "{received:?}"
    );
}

#[test]
fn wait_operation_is_listed_where_it_is_said_how_an_operation_waits() {
    let upstream = Upstream::echo();
    let names = |spec: &SpecFile, flags: &[&str]| {
        let mut session = Session::serving(spec, &upstream, flags);
        let tools = session.tools();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<String>>()
    };
    let has = |names: &[String]| names.iter().any(|name| name == "wait_operation");
    assert!(has(&names(&spec(), &[])));
    assert!(has(&names(&spec(), &["--tools", "search"])));
    assert!(!has(&names(
        &spec(),
        &["--tool-exclude", "export", "--tool-exclude", "report"]
    )));
    assert!(!has(&names(
        &spec(),
        &[
            "--tools",
            "search",
            "--tool-exclude",
            "export",
            "--tool-exclude",
            "report"
        ]
    )));
    let merely_accepted = json!({"202": {"description": "later", "headers": {"X-Id": {}}}, "2XX": {"description": "any", "headers": {"Location": {}}}});
    let without = SpecFile::with_paths(
        &json!({"/plain": {"get": {"operationId": "plain", "responses": merely_accepted}}}),
    );
    assert!(!has(&names(&without, &[])));
    let extended = SpecFile::with_paths(
        &json!({"/long": {"put": {"operationId": "long", "x-ms-long-running-operation": true}}}),
    );
    assert!(has(&names(&extended, &[])));
    let config = SpecFile::new(
        &json!({"overrides": [{"match": {"operation": "plain"}, "wait": {"interval": 2}}]})
            .to_string(),
    );
    assert!(has(&names(&without, &["--config", config.path()])));
    let config = SpecFile::new(&json!({"overrides": [{"wait": false}]}).to_string());
    assert!(!has(&names(&spec(), &["--config", config.path()])));
    let prefixed = names(&spec(), &["--tool-prefix", "x_"]);
    assert!(
        prefixed.contains(&"x_wait_operation".to_owned()),
        "{prefixed:?}"
    );
    // The name is reserved.
    let taken = SpecFile::with_paths(
        &json!({"/wait": {"get": {"operationId": "wait_operation", "responses": {"202": {"description": "later", "headers": {"Location": {}}}}}}}),
    );
    let taken = names(&taken, &[]);
    assert_eq!(
        taken
            .iter()
            .filter(|name| *name == "wait_operation")
            .count(),
        1,
        "{taken:?}"
    );
}

#[test]
fn the_audit_log_names_the_meta_tool_that_refused_a_handle_also_if_its_name_has_a_prefix() {
    let (spec, upstream, log) = (spec(), Upstream::echo(), Log::new());
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--tool-prefix", "x_", "--audit-log", log.name()],
    );
    let refused = session.call("x_wait_operation", &json!({"handle": "forged"}));
    assert_eq!(refused["isError"], true, "{refused}");
    assert_eq!(log.wait_for(1)[0]["meta_tool"], "wait_operation");
}

#[test]
fn through_the_meta_tools_an_operation_waits_in_the_same_way() {
    let (spec, upstream) = (spec(), slow(0));
    let mut session = Session::serving(
        &spec,
        &upstream,
        &[&["--tools", "search"], AT_ONCE].concat(),
    );
    let begun = session.call("call_write", &json!({"operation": "export"}));
    let done = session.call(
        "wait_operation",
        &json!({"handle": handle_in(text(&begun)), "wait": false}),
    );
    assert!(text(&done).contains("\"rows\":3"), "{done}");
}

#[test]
fn p81_a_handle_that_was_changed_or_is_another_clients_or_of_another_endpoint_is_refused() {
    let (spec, upstream) = (spec(), slow(100));
    let config = SpecFile::new(
        &json!({"auth_tokens": [{"name": "one", "env": "ONE"}, {"name": "two", "env": "TWO"}]})
            .to_string(),
    );
    let flags = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--config",
        config.path(),
        "--state-key-env",
        "STATE_KEY",
    ];
    let variables = [
        ("ONE", "token-of-client-one-0123456789"),
        ("TWO", "token-of-client-two-0123456789"),
        ("STATE_KEY", KEY),
    ];
    let server = HttpServer::start_with(&[&flags[..], AT_ONCE].concat(), &variables);
    let call = |path: &str, token: &str, tool: &str, arguments: Value| -> Value {
        let authorization = format!("Authorization: Bearer {token}");
        let body = call_message(tool, &arguments.to_string());
        let request = crate::support::http_server::http_request(
            &server.address,
            "POST",
            &[
                &authorization,
                "MCP-Protocol-Version: 2025-11-25",
                "Connection: close",
            ],
            &body,
        );
        let answer = server.raw(&request.replacen("POST /mcp ", &format!("POST {path} "), 1));
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let json = body
            .trim_start_matches(|character| character != '{')
            .trim_end_matches(|character| character != '}');
        serde_json::from_str::<Value>(json).unwrap_or_else(|_| panic!("{answer}"))["result"].clone()
    };
    let (one, two) = (variables[0].1, variables[1].1);
    let begun = call("/mcp", one, "export", json!({}));
    let handle = handle_in(text(&begun));
    // In the middle, without its end, and one that is none.
    let changed: String = handle
        .char_indices()
        .map(|(at, character)| {
            if at == 40 {
                if character == 'A' { 'B' } else { 'A' }
            } else {
                character
            }
        })
        .collect();
    let cut: String = handle.chars().skip(1).collect();
    upstream.take_all();
    for (path, token, handle) in [
        ("/mcp", two, handle.as_str()),
        ("/mcp/readonly", one, &handle),
        ("/mcp", one, &changed),
        ("/mcp", one, &cut),
        ("/mcp", one, "x"),
        ("/mcp", one, &"A".repeat(5000)),
    ] {
        let refused = call(
            path,
            token,
            "wait_operation",
            json!({"handle": handle, "wait": false}),
        );
        assert!(
            refused["isError"] == true && text(&refused).contains("not valid here"),
            "{path} {refused}"
        );
    }
    let unsaid = call("/mcp", one, "wait_operation", json!({}));
    assert!(
        unsaid["isError"] == true && text(&unsaid).contains("handle"),
        "{unsaid}"
    );
    assert!(upstream.take_all().is_empty());
    let look = call(
        "/mcp",
        one,
        "wait_operation",
        json!({"handle": handle, "wait": false}),
    );
    assert!(text(&look).contains("working"), "{look}");
    // What only reads has handles at the endpoint for it as well.
    let begun = call("/mcp/readonly", one, "report", json!({}));
    let look = call(
        "/mcp/readonly",
        one,
        "wait_operation",
        json!({"handle": handle_in(text(&begun)), "wait": false}),
    );
    assert!(text(&look).contains("working"), "{look}");
}

#[test]
fn a_handle_outlives_the_server_that_gave_it() {
    let (spec, upstream) = (spec(), slow(0));
    let start = |key: &str, more: &[&str]| {
        let flags = [
            "--spec",
            spec.path(),
            "--base-url",
            &upstream.url,
            "--state-key-env",
            "STATE_KEY",
        ];
        HttpServer::start_with(&[&flags[..], AT_ONCE, more].concat(), &[("STATE_KEY", key)])
    };
    let call = |server: &HttpServer, tool: &str, arguments: Value| {
        server.call_stateless(tool, json!({"arguments": arguments}), &json!({}))["result"].clone()
    };
    let mut first = start(KEY, &[]);
    let begun = call(&first, "export", json!({}));
    let handle = handle_in(text(&begun));
    let log = first.end();
    assert!(
        !log.contains("end with this process") && !log.contains(&handle),
        "{log}"
    );
    let look = json!({"handle": handle, "wait": false});
    let other = start(&"22".repeat(32), &[]);
    let refused = call(&other, "wait_operation", look.clone());
    assert!(text(&refused).contains("not valid here"), "{refused}");
    let narrower = start(KEY, &["--tool-exclude", "export"]);
    let refused = call(&narrower, "wait_operation", look.clone());
    assert!(
        text(&refused).contains("operation `export`, which is not served"),
        "{refused}"
    );
    // Nobody is asked about a wait, which starts nothing.
    let second = start(KEY, &["--confirm", "write"]);
    let refused = call(&second, "export", json!({}));
    assert!(refused["isError"] == true, "{refused}");
    let done = call(&second, "wait_operation", look);
    assert!(text(&done).contains("\"rows\":3"), "{done}");
    assert_eq!(
        upstream
            .take_all()
            .iter()
            .filter(|request| request.line.starts_with("POST"))
            .count(),
        1
    );
    let keyless = HttpServer::start(&["--spec", spec.path(), "--base-url", &upstream.url]);
    keyless.logged("handles of operations that take long end with this process");
}

#[test]
fn a_server_that_ends_answers_waiting_calls_with_a_handle_at_once() {
    let (spec, upstream) = (spec(), slow(1000));
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--timeout",
        "60",
        "--drain-delay",
        "0",
    ]);
    let started = Instant::now();
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| {
            server
                .post(
                    &["MCP-Protocol-Version: 2025-11-25"],
                    &call_message("export", "{}"),
                )
                .1
        });
        wait_until("the status was asked for", || {
            upstream
                .received()
                .iter()
                .any(|request| request.path() == "/jobs/7")
        });
        signal(server.pid(), "TERM");
        call.join().unwrap()
    });
    assert!(
        answer.contains("about to end") && answer.contains("handle: "),
        "{answer}"
    );
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn p14_the_requests_of_a_wait_are_one_member_of_the_audit_log() {
    let (spec, upstream, log) = (spec(), slow(1), Log::new());
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--audit-log", log.name(), "--timeout", "10"],
    );
    let done = session.call("export", &json!({}));
    assert!(text(&done).contains("\"rows\":3"), "{done}");
    session.end();
    let line = &log.wait_for(1)[0];
    assert_eq!(
        (&line["attempts"], &line["polls"], &line["status"]),
        (&json!(1), &json!(2), &json!(200)),
        "{line}"
    );
    assert_eq!(line["outcome"], "ok");
}

#[test]
fn a_command_that_is_interrupted_gives_a_handle_if_there_is_a_key() {
    let (spec, upstream) = (spec(), slow(usize::MAX));
    let interrupted = |flags: &[&str]| {
        let base_url = upstream.url.as_str();
        let mut command = command(
            &[
                &[
                    "call",
                    "--spec",
                    spec.path(),
                    "--base-url",
                    base_url,
                    "export",
                ],
                flags,
            ]
            .concat(),
        );
        let call = command
            .env("STATE_KEY", KEY)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_until("the call waits", || {
            upstream
                .received()
                .iter()
                .any(|request| request.path() == "/jobs/7")
        });
        signal(call.id(), "INT");
        let output = call.wait_with_output().unwrap();
        upstream.take_all();
        assert_eq!(output.status.code(), Some(130));
        format!("{}{}", stdout(&output), stderr(&output))
    };
    let with_key = interrupted(&["--state-key-env", "STATE_KEY"]);
    assert!(
        with_key.contains("Do not start it again") && with_key.contains("--handle A"),
        "{with_key}"
    );
    let without = interrupted(&[]);
    assert!(
        without.contains("Do not start it again") && without.contains("--state-key-env"),
        "{without}"
    );
}

#[test]
fn many_waiting_calls_do_not_slow_others_down() {
    const CALLS: usize = 256;
    let (spec, upstream) = (spec(), slow(usize::MAX));
    let mut session = Session::serving(
        &spec,
        &upstream,
        &["--timeout", "12", "max_concurrency: 64"],
    );
    let pid = session.pid();
    let before = memory(pid);
    let waiting: Vec<u64> = (0..CALLS)
        .map(|_| session.post("tools/call", &json!({"name": "export", "arguments": {}})))
        .collect();
    wait_until("all calls wait", || {
        upstream
            .received()
            .iter()
            .filter(|request| request.path() == "/jobs/7")
            .count()
            >= CALLS
    });
    let plain = session.call("plain", &json!({}));
    assert!(text(&plain).contains("plain"), "{plain}");
    let grown = memory(pid).saturating_sub(before);
    assert!(grown < 64, "{grown} MiB for {CALLS} calls");
    let mut left = waiting;
    while !left.is_empty() {
        let message = session.receive();
        assert!(text(&message["result"]).contains("handle: "), "{message}");
        left.retain(|id| message["id"] != *id);
    }
}

#[test]
fn p45_long_statuses_of_waiting_calls_neither_stop_others_nor_take_many_times_their_size() {
    const CALLS: usize = 12;
    let long = format!(
        "{{\"status\":\"Running\",\"rows\":[[]{}]}}",
        ",[]".repeat(1 << 20)
    );
    let upstream = Upstream::start(Box::new(move |request| match request.path() {
        "/exports" => reply(202, &["Location: /jobs/7"], b""),
        "/plain" => reply(200, &[], b"plain"),
        _ => reply(200, &["Content-Type: application/json"], long.as_bytes()),
    }));
    let spec = spec();
    let mut session = Session::serving(&spec, &upstream, &["--timeout", "6"]);
    let mut waiting: Vec<u64> = (0..CALLS)
        .map(|_| session.post("tools/call", &json!({"name": "export", "arguments": {}})))
        .collect();
    wait_until("all calls wait", || {
        upstream
            .received()
            .iter()
            .filter(|request| request.path() == "/jobs/7")
            .count()
            >= CALLS
    });
    let mut slowest = Duration::ZERO;
    while !waiting.is_empty() {
        let started = Instant::now();
        let plain = session.post("tools/call", &json!({"name": "plain", "arguments": {}}));
        loop {
            let message = session.receive();
            if message["id"] == plain {
                break;
            }
            assert!(text(&message["result"]).contains("Running"), "{message}");
            waiting.retain(|id| message["id"] != *id);
        }
        slowest = slowest.max(started.elapsed());
    }
    let peak = peak_memory(session.pid());
    assert!(
        slowest < Duration::from_secs(4) && peak < 240,
        "{slowest:?}, {peak} MiB"
    );
}

#[test]
fn p24_a_call_that_is_cancelled_asks_no_more() {
    let calls = AtomicUsize::new(0);
    let upstream = Upstream::start(Box::new(move |request| match request.path() {
        "/exports" => reply(
            202,
            &[&format!("Location: /jobs/{}", calls.fetch_add(1, SeqCst))],
            b"",
        ),
        _ => reply(202, &[], b""),
    }));
    let spec = spec();
    let asked = |path: &str| {
        upstream
            .received()
            .iter()
            .filter(|request| request.path() == path)
            .count()
    };
    let mut session = Session::serving(&spec, &upstream, &[]);
    let id = session.post("tools/call", &json!({"name": "export", "arguments": {}}));
    wait_until("the status was asked for", || asked("/jobs/0") > 0);
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
    session.post("tools/call", &json!({"name": "export", "arguments": {}}));
    wait_until("the next call was asked about for longer", || {
        asked("/jobs/1") > 2
    });
    assert_eq!(asked("/jobs/0"), 1);
}

#[test]
fn the_command_waits_too_and_goes_on_with_a_handle() {
    let (spec, upstream) = (spec(), Arc::new(slow(1)));
    let key = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(key.path(), KEY).unwrap();
    let key = key.path().display().to_string();
    let call = |more: &[&str], tool: &str| {
        let settings = ["call", "--spec", spec.path(), "--base-url", &upstream.url];
        run(&[&settings[..], more, &[tool]].concat())
    };
    let done = call(&[], "export");
    assert!(stdout(&done).contains("\"rows\": 3"), "{}", stderr(&done));
    assert!(
        stderr(&done).contains("not done yet: working"),
        "{}",
        stderr(&done)
    );
    let keyless = call(AT_ONCE, "export");
    assert!(
        stderr(&keyless).contains("--state-key-env") && !stderr(&keyless).contains("--handle "),
        "{}",
        stderr(&keyless)
    );
    let with_key = [&["--state-key-file", key.as_str()], AT_ONCE].concat();
    let begun = call(&with_key, "export");
    let notes = stderr(&begun);
    let handle = notes
        .split("--handle ")
        .nth(1)
        .unwrap_or_else(|| panic!("{notes}"))
        .split_whitespace()
        .next()
        .unwrap()
        .to_owned();
    let other = call(&["--state-key-file", &key, "--handle", &handle], "plain");
    let why = stderr(&other);
    assert!(
        !other.status.success()
            && why.contains("belongs to a call of `export`, and not of `plain`"),
        "{why}"
    );
    // The operator may do everything, also if a rule asks for more of clients.
    let rules = SpecFile::new(
        &json!({"access": [{"match": {"operation": "export"}, "claims": {"groups": ["ops"]}}]})
            .to_string(),
    );
    for config in [&[][..], &["--config", rules.path()]] {
        let done = call(
            &[config, &["--state-key-file", &key, "--handle", &handle]].concat(),
            "export",
        );
        assert!(
            stdout(&done).contains("\"rows\": 3"),
            "{} {}",
            stdout(&done),
            stderr(&done)
        );
    }
}

#[test]
fn the_mock_plays_an_operation_that_takes_long() {
    let example = |value: Value| json!({"description": "d", "content": {"application/json": {"example": value}}});
    let spec = SpecFile::with_paths(&json!({
        "/exports": {"post": {"operationId": "export", "responses": {"200": example(json!({"rows": 3})), "202": example(json!({"state": "queued"}))}}},
        "/jobs": {"delete": {"operationId": "stop", "responses": {"202": example(json!({"state": "queued"}))}}},
    }));
    for (tool, expected) in [
        ("export", "\"rows\": 3"),
        ("stop", "\"status\": \"succeeded\""),
    ] {
        let done = run(&["call", "--spec", spec.path(), "--mock", tool]);
        assert!(
            stdout(&done).contains(expected),
            "{tool}: {} {}",
            stdout(&done),
            stderr(&done)
        );
        assert!(
            stderr(&done).contains("this is its result"),
            "{tool}: {}",
            stderr(&done)
        );
    }
}

#[test]
fn p67_a_handle_belongs_to_the_tenant_of_its_call() {
    let (spec, north, south) = (spec(), slow(0), slow(0));
    let tenants = json!({
        "header": "X-Tenant",
        "entries": { "north": { "base_url": north.url }, "south": { "base_url": south.url } },
    });
    let config = SpecFile::new(&json!({ "spec": spec.path(), "tenants": tenants }).to_string());
    let server = HttpServer::start(&[&["--config", config.path()], AT_ONCE].concat());
    let call = |tenant: &str, tool: &str, arguments: Value| {
        let tenant = format!("X-Tenant: {tenant}");
        server.call_stateless_as(
            &[&tenant],
            tool,
            json!({"arguments": arguments}),
            &json!({}),
        )["result"]
            .clone()
    };
    let begun = call("north", "export", json!({}));
    let look = json!({"handle": handle_in(text(&begun)), "wait": false});
    let refused = call("south", "wait_operation", look.clone());
    assert!(text(&refused).contains("not valid here"), "{refused}");
    let done = call("north", "wait_operation", look);
    assert!(text(&done).contains("\"rows\":3"), "{done}");
    assert!(south.take_all().is_empty());
}

#[test]
fn what_a_client_forwards_is_that_of_each_call() {
    let upstream = Upstream::start(Box::new(|request| match request.path() {
        "/exports" => reply(202, &["Location: /jobs/7"], b""),
        _ => reply(
            200,
            &["Content-Type: application/json"],
            json!({"for": request.header("x-client")})
                .to_string()
                .as_bytes(),
        ),
    }));
    let spec = spec();
    let flags = [
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "forward_header: [X-Client]",
    ];
    let server = HttpServer::start(&[&flags[..], AT_ONCE].concat());
    let call = |client: &str, tool: &str, arguments: Value| {
        let client = format!("X-Client: {client}");
        server.call_stateless_as(
            &[&client],
            tool,
            json!({"arguments": arguments}),
            &json!({}),
        )["result"]
            .clone()
    };
    let begun = call("first-value", "export", json!({}));
    call(
        "second-value",
        "wait_operation",
        json!({"handle": handle_in(text(&begun)), "wait": false}),
    );
    let received = upstream.take_all();
    let sent: Vec<Option<&str>> = received
        .iter()
        .map(|request| request.header("x-client"))
        .collect();
    assert_eq!(
        sent,
        [Some("first-value"), Some("second-value")],
        "what is forwarded is that of each call"
    );
}
