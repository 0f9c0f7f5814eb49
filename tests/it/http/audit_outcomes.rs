//! Outcomes of calls in the audit log, of which none is lost under load: while the file is renamed,
//! and if two servers share it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::PathBuf;
use std::thread::ScopedJoinHandle;

use serde_json::{Value, json};

use super::audit::{Log, asking_server, lines, outcomes};
use super::auth_oauth::{Issuer, Signer, wait_for_keys};
use crate::documents::from_a_url::slow_document;
use crate::support::http_server::{http_request, scrape};
use crate::support::{
    HttpServer, RawSession, Session, SpecFile, Upstream, call_message, listener, petstore, reply,
    signal, stateless_meta, wait_until,
};

fn call(server: &HttpServer, tool: &str) {
    server.post(
        &["MCP-Protocol-Version: 2025-11-25"],
        &call_message(tool, "{}"),
    );
}

fn outcomes_of(spec: &SpecFile, base_url: &str, more: &[&str], tools: &[&str]) -> Vec<String> {
    let log = Log::new();
    let args = [
        "--spec",
        spec.path(),
        "--base-url",
        base_url,
        "--audit-log",
        log.name(),
        "retries: 0",
    ];
    let server = HttpServer::start(&[&args, more].concat());
    tools.iter().for_each(|tool| call(&server, tool));
    let lines = log.wait_for(tools.len());
    assert_eq!(lines.len(), tools.len(), "{lines:?}");
    let names = lines
        .iter()
        .map(|line| line["outcome"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn what_ends_a_call_is_named() {
    let spec = SpecFile::with_paths(&json!({
        "/a": {"get": {"operationId": "a"}},
        "/locked": {"get": {"operationId": "locked", "security": [{"key": []}]}},
    }));
    let locked = std::fs::read_to_string(spec.path()).unwrap();
    let mut document: Value = serde_json::from_str(&locked).unwrap();
    document["components"] =
        json!({"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}});
    let spec = SpecFile::new(&document.to_string());
    let (taken, refusing) = listener();
    drop(taken);
    let broken = Upstream::raw(|_, stream| {
        use std::io::Write as _;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nbroken off");
    });
    let good = Upstream::start(Box::new(|_| {
        reply(200, &["Content-Type: application/json"], b"{\"ok\":true}")
    }));
    let once = ["breaker_failures: 1", "breaker_pause: 600"];
    for (base_url, more, tools, expected) in [
        (
            &refusing,
            &once[..],
            &["a", "a"][..],
            &["unreachable", "circuit_open"][..],
        ),
        (&broken.url, &[], &["a"], &["broken_reply"]),
        (
            &good.url,
            &[],
            &["locked", "a"],
            &["credential_missing", "ok"],
        ),
        (
            &good.url,
            &["--max-response-bytes", "5"],
            &["a"],
            &["too_large"],
        ),
        (
            &good.url,
            &["rate_limit: 0.001", "--timeout", "1"],
            &["a", "a"],
            &["ok", "rate_limited"],
        ),
    ] {
        assert_eq!(
            outcomes_of(&spec, base_url, more, tools),
            expected,
            "{more:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_call_that_is_refused_because_of_its_headers_or_its_metadata_has_a_line() {
    let log = Log::new();
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--audit-log", log.name()]);
    let legacy = call_message("get_pet", r#"{"petId":7}"#);
    let mut message: Value = serde_json::from_str(&legacy).unwrap();
    message["params"]["_meta"] = stateless_meta(&json!({}));
    let modern = message.to_string();
    let version = "MCP-Protocol-Version: 2026-07-28";
    let of_call = ["Mcp-Method: tools/call", "Mcp-Name: get_pet"];
    let with_meta = |meta: Value| {
        let mut message = message.clone();
        message["params"]["_meta"] = meta;
        message.to_string()
    };
    let unknown = with_meta(json!({
        "io.modelcontextprotocol/protocolVersion": "2099-01-01",
        "io.modelcontextprotocol/clientCapabilities": {}
    }));
    let incapable = with_meta(json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}));
    for (headers, message) in [
        (&["MCP-Protocol-Version: 1999-01-01"][..], &legacy),
        (
            &["MCP-Protocol-Version: 2099-01-01", of_call[0], of_call[1]],
            &unknown,
        ),
        (&[version, of_call[0], of_call[1]], &incapable),
        (
            &[version, "Mcp-Method: tools/call", "Mcp-Name: delete_pet"],
            &modern,
        ),
        (&[version, "Mcp-Name: get_pet"], &modern),
        (
            &[version, "Mcp-Method: tools/list", "Mcp-Name: get_pet"],
            &modern,
        ),
        (
            &[version, "Mcp-Method: tools/call", "Mcp-Name: get_pet"],
            &legacy,
        ),
    ] {
        let (status, _) = server.send("POST", headers, message);
        assert!((400..500).contains(&status), "{headers:?}: {status}");
    }
    let lines = log.wait_for(7);
    assert_eq!(
        outcomes(&lines),
        BTreeMap::from([("invalid_message".to_owned(), 7)])
    );
    assert!(
        lines
            .iter()
            .all(|line| line["tool"].is_null() && line["client"].is_string()),
        "{lines:?}"
    );
}

#[test]
fn a_call_whose_message_cannot_be_read_has_a_line() {
    let calls = [
        json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "get_pet", "arguments": [1]}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": 7}}).to_string(),
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call"}).to_string(),
        json!({"jsonrpc": "2.0", "id": 1.5, "method": "tools/call", "params": {"name": "get_pet"}}).to_string(),
        r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"get_pet","name":"delete_pet"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":9,"params":{},"method":"tools/call","params":{"name":"get_pet"}}"#.to_owned(),
    ];
    let others = [
        json!({"jsonrpc": "2.0", "id": 1.5, "method": "tools/list"}).to_string(),
        "tools/call".to_owned(),
    ];
    for key in [None, Some("sixteen-letters-or-more")] {
        let log = Log::new();
        let args = ["--spec", &petstore(), "--mock", "--audit-log", log.name()];
        let with_key = [&args[..], &["--auth-token-env", "A_TOKEN"]].concat();
        let server = match key {
            Some(key) => HttpServer::start_with(&with_key, &[("A_TOKEN", key)]),
            None => HttpServer::start(&args),
        };
        let token = key.map(|key| format!("Authorization: Bearer {key}"));
        let headers: Vec<&str> = token
            .iter()
            .map(String::as_str)
            .chain(["MCP-Protocol-Version: 2025-11-25"])
            .collect();
        for message in calls.iter().chain(&others) {
            server.post(&headers, message);
        }
        server.post(&headers, &call_message("list_pets", "{}"));
        let lines = log.wait_for(calls.len() + 1);
        let expected = [("invalid_message", calls.len()), ("ok", 1)];
        assert_eq!(
            outcomes(&lines),
            expected
                .map(|(name, count)| (name.to_owned(), count))
                .into()
        );
    }
    let log = Log::new();
    let mut session = Session::start(&[
        "serve",
        "--spec",
        &petstore(),
        "--mock",
        "--audit-log",
        log.name(),
    ]);
    for message in calls.iter().chain(&others) {
        session.send_text(message);
        assert!(session.receive()["error"].is_object(), "{message}");
    }
    session.call("list_pets", &json!({}));
    let lines = log.wait_for(calls.len() + 1);
    let expected = [("invalid_message", calls.len()), ("ok", 1)];
    assert_eq!(
        outcomes(&lines),
        expected
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    );
}

#[test]
fn a_call_that_is_refused_over_stdio_because_of_its_metadata_or_its_time_has_a_line() {
    let of = |version: &str| json!({"io.modelcontextprotocol/protocolVersion": version});
    let call = |meta: &Value| {
        let mut message: Value =
            serde_json::from_str(&call_message("get_pet", r#"{"petId":7}"#)).unwrap();
        message["params"]["_meta"] = meta.clone();
        message.to_string()
    };
    let plain = call_message("get_pet", r#"{"petId":7}"#);
    let list = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/list", "params": {"_meta": stateless_meta(&json!({}))}}).to_string();
    let (unknown, incomplete, whole) = (
        call(&of("2099-01-01")),
        call(&of("2026-07-28")),
        call(&stateless_meta(&json!({}))),
    );
    let marked = format!(
        "\u{feff}{}",
        plain.replace("\"name\"", "\"name\":\"a\",\"name\"")
    );
    for (is_begun, messages, expected) in [
        (true, [&unknown, &incomplete, &marked, &plain], [3, 1]),
        (false, [&list, &plain, &incomplete, &whole], [2, 1]),
    ] {
        let log = Log::new();
        let mut session = RawSession::start(&[
            "serve",
            "--spec",
            &petstore(),
            "--mock",
            "--audit-log",
            log.name(),
        ]);
        if is_begun {
            session.initialize();
        }
        for message in messages {
            session.send(message.as_bytes());
            session.receive();
        }
        let lines = log.wait_for(expected.iter().sum());
        let expected = ["invalid_message", "ok"]
            .map(str::to_owned)
            .into_iter()
            .zip(expected);
        assert_eq!(
            outcomes(&lines),
            expected.collect(),
            "{is_begun}: {lines:?}"
        );
    }
}

#[test]
fn a_client_that_leaves_while_its_scope_waits_for_the_document_has_cancelled_its_call() {
    let (documents, _release) = slow_document();
    let (signer, log) = (Signer::rsa(), Log::new());
    let issuer = Issuer::start(vec![signer.jwk("one")]);
    let server = HttpServer::start(&[
        "--spec",
        &documents.url,
        "--mock",
        "--audit-log",
        log.name(),
        "--oauth-issuer",
        &issuer.name(),
        "--public-url",
        "https://mcp.example/mcp",
        "oauth_read_scope: [read]",
    ]);
    wait_for_keys(&issuer);
    let token = signer.token(
        &json!({"alg": "RS256", "kid": "one"}),
        &issuer.reading_claims(),
    );
    let bearer = format!("Authorization: Bearer {token}");
    let headers = [bearer.as_str(), "MCP-Protocol-Version: 2025-11-25"];
    let mut client = server.connect();
    let call = call_message("list_pets", "{}");
    client
        .write_all(http_request(&server.address, "POST", &headers, &call).as_bytes())
        .unwrap();
    // The answer to a request that was sent later says that the call was taken.
    server.post(&headers, r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    drop(client);
    let line = log.wait_for(1).remove(0);
    assert_eq!(line["outcome"], "cancelled", "{line}");
    assert!(
        line["client"]
            .as_str()
            .is_some_and(|client| client.contains("bob")),
        "{line}"
    );
}

#[test]
fn no_line_is_lost_while_the_file_is_renamed_under_load() {
    const CLIENTS: usize = 4;
    const CALLS: usize = 100;
    let log = Log::new();
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--audit-log",
        log.name(),
        "--metrics-bind",
        "127.0.0.1:0",
    ]);
    let mut files: Vec<PathBuf> = vec![log.path.clone()];
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    for number in 0..CALLS {
                        // An unknown tool is refused, and has its line as well.
                        call(
                            &server,
                            if number % 5 == 0 {
                                "no_such_tool"
                            } else {
                                "list_pets"
                            },
                        );
                    }
                })
            })
            .collect();
        while !clients.iter().all(ScopedJoinHandle::is_finished) {
            let moved = log.path.with_extension(files.len().to_string());
            if std::fs::rename(&log.path, &moved).is_ok() {
                files.push(moved);
                signal(server.pid(), "HUP");
                wait_until("the file is there again", || log.path.exists());
            }
        }
    });
    assert!(
        files.len() > 2,
        "it was renamed under load: {}",
        files.len()
    );
    let all = || {
        files
            .iter()
            .flat_map(|file| lines(file))
            .collect::<Vec<Value>>()
    };
    wait_until("all lines are written", || all().len() >= CLIENTS * CALLS);
    let all = all();
    let identifiers: BTreeSet<&str> = all
        .iter()
        .map(|line| line["id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (all.len(), identifiers.len()),
        (CLIENTS * CALLS, CLIENTS * CALLS)
    );
    let expected = [
        ("ok", CLIENTS * CALLS * 4 / 5),
        ("unknown_tool", CLIENTS * CALLS / 5),
    ];
    assert_eq!(
        outcomes(&all),
        expected
            .map(|(name, count)| (name.to_owned(), count))
            .into()
    );
    let logs = server.logged("metrics at http://");
    let (_, address) = logs.split_once("metrics at http://").unwrap();
    let page = scrape(address.split('/').next().unwrap());
    assert!(page.contains("openapi_mcp_audit_lost_total 0"), "{page}");
}

#[test]
fn two_servers_may_write_to_one_file() {
    const CALLS: usize = 100;
    let log = Log::new();
    let args = ["--spec", &petstore(), "--mock", "--audit-log", log.name()];
    let servers = [(); 2].map(|()| HttpServer::start(&args));
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(move || (0..CALLS).for_each(|_| call(server, "list_pets")));
        }
    });
    let lines = log.wait_for(2 * CALLS);
    let keys: BTreeSet<&str> = lines
        .iter()
        .map(|line| line["key_id"].as_str().unwrap())
        .collect();
    assert_eq!(
        (lines.len(), keys.len()),
        (2 * CALLS, 2),
        "each has a key of its own"
    );
}

#[test]
fn a_wrong_call_of_a_tool_that_stands_for_operations_is_none_of_the_api() {
    let log = Log::new();
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--tools",
        "search",
        "--audit-log",
        log.name(),
    ]);
    for (tool, arguments) in [
        ("search_operations", r#"{"zzz":1}"#),
        ("describe_operations", r#"{"zzz":1}"#),
        ("call_read", r#"{"operation":"no_such_operation"}"#),
        ("call_read", "{}"),
    ] {
        server.post(
            &["MCP-Protocol-Version: 2025-11-25"],
            &call_message(tool, arguments),
        );
    }
    let lines = log.wait_for(4);
    let seen: Vec<(&str, &str)> = lines
        .iter()
        .map(|line| {
            let tool = line["tool"].as_str().or(line["meta_tool"].as_str());
            (
                tool.unwrap_or_default(),
                line["outcome"].as_str().unwrap_or_default(),
            )
        })
        .collect();
    let expected = [
        "search_operations",
        "describe_operations",
        "call_read",
        "call_read",
    ]
    .map(|tool| (tool, "invalid_arguments"));
    assert_eq!(seen, expected);
}

#[test]
fn what_a_person_answers_is_named() {
    let log = Log::new();
    let server = asking_server(&log);
    let able = json!({"elicitation": {"form": {}}});
    for action in ["decline", "cancel"] {
        let asked = server.call_stateless("delete_pet", json!({"arguments": {"petId": 7}}), &able)
            ["result"]
            .clone();
        let question = asked["inputRequests"]
            .as_object()
            .unwrap()
            .keys()
            .next()
            .unwrap()
            .clone();
        let answered = json!({
            "arguments": {"petId": 7},
            "requestState": asked["requestState"],
            "inputResponses": {question: {"action": action}},
        });
        server.call_stateless("delete_pet", answered, &able);
    }
    // A client that cannot ask its user.
    server.call_stateless("delete_pet", json!({"arguments": {"petId": 7}}), &json!({}));
    let lines = log.wait_for(5);
    let named: Vec<&str> = lines
        .iter()
        .map(|line| line["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(
        named,
        ["asked", "declined", "asked", "unanswered", "unanswered"]
    );
    assert!(
        lines
            .iter()
            .all(|line| line["confirmed"] == false && line["attempts"] == Value::Null),
        "{lines:?}"
    );
}
