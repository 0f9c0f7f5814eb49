//! Sessions over HTTP: identifiers that cannot be guessed or used for another client, and a bounded
//! number of them.

use serde_json::json;

use crate::support::{
    CALL, HttpServer, SpecFile, Upstream, initialize_parameters, petstore, reply, soak,
};

#[test]
fn p29_session_identifiers_are_random_and_forged_or_ended_ones_are_refused() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--confirm", "destructive"]);
    let lines: Vec<String> = (0..20).map(|_| server.begin_session(&[])).collect();
    let sessions: Vec<&str> = lines
        .iter()
        .map(|line| line.trim_start_matches("Mcp-Session-Id: "))
        .collect();
    let distinct: std::collections::HashSet<&&str> = sessions.iter().collect();
    assert_eq!(distinct.len(), 20);
    for session in &sessions {
        // 128 random bits.
        let is_hex = session.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(session.len() == 32 && is_hex, "{session}");
    }
    let status = |method: &str, session: &str| {
        server
            .send(method, &[&format!("Mcp-Session-Id: {session}")], CALL)
            .0
    };
    assert_eq!(status("POST", sessions[0]), 200);
    let mut altered = sessions[0].to_owned();
    let last = if altered.pop() == Some('0') { '1' } else { '0' };
    altered.push(last);
    let long = "x".repeat(5000);
    for forged in [
        "",
        "1",
        "00000000000000000000000000000000",
        &altered,
        &sessions[0].to_uppercase(),
        "../../x",
        &long,
    ] {
        let got = status("POST", forged);
        assert!((400..500).contains(&got), "{forged}: {got}");
    }
    assert!((200..300).contains(&status("DELETE", sessions[0])));
    assert_eq!(status("POST", sessions[0]), 404, "it was ended");
    assert_eq!(status("POST", sessions[1]), 200, "that was not");
    assert_eq!(server.send("POST", &[&lines[1], &lines[2]], CALL).0, 400);
}

#[test]
fn p29_a_session_belongs_to_the_client_that_began_it() {
    let tokens = (
        "ONE",
        "token-of-the-first-client",
        "TWO",
        "token-of-the-second-client",
    );
    let args = [
        "--spec",
        &petstore(),
        "--mock",
        "--confirm",
        "destructive",
        "--auth-token-env",
        "ONE,TWO",
    ];
    let server = HttpServer::start_with(&args, &[(tokens.0, tokens.1), (tokens.2, tokens.3)]);
    let (one, two) = (
        format!("Authorization: Bearer {}", tokens.1),
        format!("Authorization: Bearer {}", tokens.3),
    );
    let session = server.begin_session(&[&one]);
    assert_eq!(server.send("POST", &[&one, &session], CALL).0, 200);
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(
            server.send(method, &[&two, &session], CALL).0,
            404,
            "{method}"
        );
        assert_eq!(server.send(method, &[&session], CALL).0, 401, "{method}");
    }
    assert_eq!(
        server.send("POST", &[&one, &session], CALL).0,
        200,
        "it was not ended by others"
    );
}

#[test]
fn p30_two_sessions_with_equal_ids_get_their_own_answers() {
    let upstream = Upstream::start(Box::new(|request| {
        let body = json!({"path": request.path()}).to_string();
        reply(200, &["Content-Type: application/json"], body.as_bytes())
    }));
    let spec = SpecFile::with_paths(
        &json!({"/items/{id}": {"get": {"operationId": "get", "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}}]}}}),
    );
    let server = HttpServer::start(&[
        "--spec",
        spec.path(),
        "--base-url",
        &upstream.url,
        "--confirm",
        "destructive",
    ]);
    let sessions = [server.begin_session(&[]), server.begin_session(&[])];
    std::thread::scope(|scope| {
        for (client, session) in sessions.iter().enumerate() {
            for lane in 0..4 {
                let server = &server;
                scope.spawn(move || {
                    for number in 0..50 {
                        let id = format!("{client}-{lane}-{number}");
                        let params = json!({"name": "get", "arguments": {"id": id}});
                        let body = json!({"jsonrpc": "2.0", "id": lane * 50 + number, "method": "tools/call", "params": params});
                        let (status, answer) = server.send("POST", &[session], &body.to_string());
                        assert!(status == 200 && answer.contains(&format!("/items/{id}")), "{id}: {answer}");
                    }
                });
            }
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn p25_many_clients_at_once_are_served_and_abandoned_sessions_are_bounded() {
    use crate::support::memory;

    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "--confirm", "destructive"]);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_parameters(&json!({}))}).to_string();
    let begin_all = |count: usize| -> usize {
        std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        (0..count / 8)
                            .filter(|_| server.send("POST", &[], &initialize).0 == 200)
                            .count()
                    })
                })
                .collect();
            lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
        })
    };
    let before = memory(server.pid());
    let first = server.begin_session(&[]);
    assert_eq!(begin_all(504), 504);
    assert_eq!(
        server.send("POST", &[&first], CALL).0,
        404,
        "the oldest session of a client ends first"
    );
    begin_all(if soak() { 6000 } else { 800 });
    let grown = memory(server.pid()).saturating_sub(before);
    assert!(grown < 256, "{grown} MiB");
    let answer = server.call_stateless("list_pets", json!({"arguments": {}}), &json!({}));
    assert_eq!(
        answer["result"]["isError"], false,
        "a client that needs no session is still served: {answer}"
    );
}

#[test]
fn p45_a_client_that_begins_many_sessions_shuts_nobody_out() {
    let args = [
        "--spec",
        &petstore(),
        "--mock",
        "--confirm",
        "destructive",
        "--auth-token-env",
        "ONE,TWO",
    ];
    let server = HttpServer::start_with(
        &args,
        &[
            ("ONE", "token-of-the-first-client"),
            ("TWO", "token-of-the-second-client"),
        ],
    );
    let [one, two] = ["first", "second"]
        .map(|which| format!("Authorization: Bearer token-of-the-{which}-client"));
    let kept = server.begin_session(&[&two]);
    let first = server.begin_session(&[&one]);
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": initialize_parameters(&json!({}))}).to_string();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..999 / 8 {
                    assert_eq!(server.send("POST", &[&one], &initialize).0, 200);
                }
            });
        }
    });
    let last = server.begin_session(&[&one]);
    assert_eq!(
        server.send("POST", &[&two, &kept], CALL).0,
        200,
        "a session of another client lives on"
    );
    let another = server.begin_session(&[&two]);
    assert_eq!(server.send("POST", &[&two, &another], CALL).0, 200);
    assert_eq!(server.send("POST", &[&one, &last], CALL).0, 200);
    assert_eq!(
        server.send("POST", &[&one, &first], CALL).0,
        404,
        "its own oldest sessions make room"
    );
}
