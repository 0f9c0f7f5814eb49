//! Static bearer tokens and rate limits over HTTP, and what needs no token.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::support::http_server::http_request;
use crate::support::{
    CALL, HttpServer, LIST, TIMEOUT, Upstream, command, petstore, run, stderr, wait_until,
};

const TOKEN: &str = "a-token-of-one-client-4711";
const OTHER: &str = "another-token-of-a-client";
fn authorization(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

/// The status of a `tools/list` request with these headers, and the whole answer.
fn ask(server: &HttpServer, headers: &[&str]) -> (u16, String) {
    server.send("POST", headers, LIST)
}

#[test]
fn p31_p54_p56_a_client_without_the_right_token_is_refused() {
    let upstream = Upstream::echo();
    let args = [
        "--spec",
        &petstore(),
        "--base-url",
        &upstream.url,
        "--auth-token-env",
        "ONE,TWO",
        "--log-level",
        "trace",
    ];
    let mut server = HttpServer::start_with(&args, &[("ONE", TOKEN), ("TWO", OTHER)]);
    for good in [
        authorization(TOKEN),
        authorization(OTHER),
        format!("authorization: bearer {TOKEN}"),
        format!("AUTHORIZATION: BEARER  {TOKEN} "),
    ] {
        assert_eq!(ask(&server, &[&good]).0, 200, "{good}");
    }
    let upper = authorization(&TOKEN.to_uppercase());
    let longer = authorization(&format!("{TOKEN}x"));
    let shorter = authorization(TOKEN.strip_suffix('1').unwrap());
    for (lines, status, told) in [
        (&[][..], 401, ""),
        (&["Authorization: Basic dXNlcjpwYXNz"], 401, ""),
        (&["Authorization:"], 401, ""),
        (&["X-Api-Key: a-token-of-one-client-4711"], 401, ""),
        (&["Cookie: token=a-token-of-one-client-4711"], 401, ""),
        (&["Authorization: a-token-of-one-client-4711"], 401, ""),
        (&["Authorization: Bearer"], 401, ""),
        (&["Authorization: Bearer "], 401, ""),
        (&["Authorization: Bearer wrong"], 401, "invalid_token"),
        (&[upper.as_str()], 401, "invalid_token"),
        (&[longer.as_str()], 401, "invalid_token"),
        (&[shorter.as_str()], 401, "invalid_token"),
        (
            &[&authorization(TOKEN), &authorization(TOKEN)],
            400,
            "invalid_request",
        ),
    ] {
        let (got, answer) = ask(&server, lines);
        assert_eq!(got, status, "{lines:?}: {answer}");
        let challenge = answer.lines().find(|line| {
            line.to_ascii_lowercase()
                .starts_with("www-authenticate: bearer ")
        });
        let challenge = challenge.unwrap_or_else(|| panic!("{lines:?}: {answer}"));
        assert_eq!(
            challenge.contains("error="),
            !told.is_empty(),
            "{lines:?}: {challenge}"
        );
        assert!(challenge.contains(told), "{lines:?}: {challenge}");
    }
    // Nor is a body read before the token is seen.
    let answer = server.raw(&format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: 200000000\r\n\r\n{{",
        server.address
    ));
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(upstream.received().is_empty());
    let (status, _) = server.post(
        &[&authorization(TOKEN), "Cookie: a=b", "X-Api-Key: k"],
        CALL,
    );
    assert!(status.contains(" 200 "), "{status}");
    let received = format!("{:?}", upstream.take_one());
    for private in [TOKEN, "a=b", "x-api-key", "authorization", "cookie"] {
        assert!(
            !received.contains(private),
            "{private} went upstream: {received}"
        );
    }
    let logs = server.end();
    assert!(!logs.contains(TOKEN) && !logs.contains(OTHER), "{logs}");
}

#[test]
fn p54_a_health_check_and_a_preflight_need_no_token() {
    let args = [
        "--spec",
        &petstore(),
        "--mock",
        "--auth-token-env",
        "ONE",
        "allow_origin: [\"https://app.example\"]",
    ];
    let server = HttpServer::start_with(&args, &[("ONE", TOKEN)]);
    let address = &server.address;
    let get = server.get("/healthz");
    assert!(get.starts_with("HTTP/1.1 200 "), "{get}");
    let preflight = server.raw(&format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: {address}\r\nOrigin: https://app.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\nConnection: close\r\n\r\n"
    ));
    let lower = preflight.to_ascii_lowercase();
    assert!(lower.starts_with("http/1.1 204 "), "{preflight}");
    assert!(
        lower.contains("access-control-allow-headers: content-type, accept, authorization"),
        "{preflight}"
    );
    // The page may read why it was refused.
    let (status, refused) = ask(&server, &["Origin: https://app.example"]);
    let lower = refused.to_ascii_lowercase();
    assert_eq!(status, 401);
    assert!(
        lower.contains("access-control-expose-headers: www-authenticate"),
        "{refused}"
    );
    // A foreign page learns nothing of tokens.
    assert_eq!(
        ask(
            &server,
            &["Origin: https://evil.example", &authorization(TOKEN)]
        )
        .0,
        403
    );
}

#[test]
fn p54_tokens_of_a_file_are_rotated_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens");
    std::fs::write(&path, format!("# the first\n{TOKEN}\n")).unwrap();
    let mut server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--auth-token-file",
        path.to_str().unwrap(),
    ]);
    let status = |server: &HttpServer, token: &str| ask(server, &[&authorization(token)]).0;
    assert_eq!((status(&server, TOKEN), status(&server, OTHER)), (200, 401));
    std::fs::write(&path, format!("{OTHER}\n")).unwrap();
    server.logged("there are 1");
    assert_eq!((status(&server, TOKEN), status(&server, OTHER)), (401, 200));
    // A file that cannot be used changes nothing.
    std::fs::write(&path, "short").unwrap();
    server.logged("keeps its last state");
    assert_eq!(status(&server, OTHER), 200);
    let logs = server.end();
    assert!(!logs.contains(OTHER) && !logs.contains(TOKEN), "{logs}");
}

#[test]
fn all_unusable_tokens_are_reported_at_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens");
    std::fs::write(&path, "long-enough-for-a-token\nhunter2\n").unwrap();
    let file = path.to_str().unwrap();
    let spec = petstore();
    let args = [
        "serve",
        "--spec",
        &spec,
        "--mock",
        "--transport",
        "http",
        "--bind",
        "127.0.0.1:0",
        "--auth-token-env",
        "EMPTY,SHORT,UNSET",
        "--auth-token-file",
        file,
        "--auth-token-file",
        "/nowhere/tokens",
        "client_rate_limit: 0",
        "max_connections: 0",
    ];
    let output = command(&args)
        .env("EMPTY", "")
        .env("SHORT", "s3cret")
        .output()
        .unwrap();
    let value = run(&[
        "serve",
        "--spec",
        &spec,
        "--transport",
        "http",
        "--auth-token-env",
        "a68eac37d41494",
    ]);
    assert!(
        value.status.code() == Some(2) && !stderr(&value).contains("a68e"),
        "{}",
        stderr(&value)
    );
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for expected in [
        "`EMPTY` is empty",
        "`SHORT`",
        "`UNSET` is not set",
        "line 2",
        "/nowhere/tokens",
        "`client_rate_limit`",
        "`max_connections`",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(
        !text.contains("s3cret") && !text.contains("hunter2"),
        "{text}"
    );
    // Over stdio no client could send one.
    let args = [
        "serve",
        "--spec",
        &spec,
        "--mock",
        "--auth-token-env",
        "SHORT",
        "client_rate_limit: 1",
    ];
    let output = run(&args);
    let text = stderr(&output);
    assert!(
        text.contains("--auth-token-env needs --transport http")
            && text.contains("`client_rate_limit` needs"),
        "{text}"
    );
}

#[test]
fn p54_a_bind_beyond_loopback_needs_tokens_or_an_explicit_permission() {
    let spec = petstore();
    let args = [
        "serve",
        "--spec",
        &spec,
        "--mock",
        "--transport",
        "http",
        "--bind",
        "0.0.0.0:0",
        "--allow-host",
        "mcp.example",
    ];
    let output = run(&args);
    assert!(
        output.status.code() == Some(2) && stderr(&output).contains("--auth-token-env"),
        "{}",
        stderr(&output)
    );
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.yaml");
    std::fs::write(
        &config,
        "bind: 0.0.0.0:0\ntransport: http\nclient_rate_limit: 0.5\nmax_connections: 8\n",
    )
    .unwrap();
    // Neither the address nor the transport is a flag here, so that those of the file count.
    let args = [
        "serve",
        "--config",
        config.to_str().unwrap(),
        "--spec",
        &spec,
        "--mock",
    ];
    let mut child = command(
        &[
            &args[..],
            &["--allow-host", "mcp.example", "--auth-token-env", "ONE"],
        ]
        .concat(),
    )
    .env("ONE", TOKEN)
    .stderr(std::process::Stdio::piped())
    .spawn()
    .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stderr.take().unwrap()));
    let listening = lines.find(|line| {
        line.as_ref()
            .is_ok_and(|line| line.contains("listening on http://0.0.0.0:"))
    });
    let _ = child.kill();
    let _ = child.wait();
    assert!(listening.is_some());
}

#[test]
fn p58_each_client_has_its_own_rate_and_is_told_when_to_come_back() {
    let args = [
        "--spec",
        &petstore(),
        "--mock",
        "--auth-token-env",
        "ONE,TWO",
        "client_rate_limit: 3",
    ];
    let server = HttpServer::start_with(&args, &[("ONE", TOKEN), ("TWO", OTHER)]);
    let started = Instant::now();
    let answers: Vec<(u16, String)> = (0..20)
        .map(|_| ask(&server, &[&authorization(TOKEN)]))
        .collect();
    let served = answers.iter().filter(|(status, _)| *status == 200).count();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few"
    )]
    let most = 3 + (started.elapsed().as_secs_f64() * 3.0).ceil() as usize;
    assert!((3..=most).contains(&served), "{served} of 20");
    for (status, answer) in &answers {
        assert!([200, 429].contains(status), "{answer}");
        if *status == 429 {
            assert!(
                answer
                    .to_ascii_lowercase()
                    .contains("\r\nretry-after: 1\r\n"),
                "{answer}"
            );
        }
    }
    assert_eq!(ask(&server, &[&authorization(OTHER)]).0, 200);
    // A client without a good token is counted by its address.
    let guess = || ask(&server, &["Authorization: Bearer guess"]).0;
    assert_eq!(guess(), 401);
    wait_until("no guess is refused for its rate", || guess() == 429);
}

#[test]
fn p58_connections_beyond_the_limit_wait_for_a_free_place() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "max_connections: 2"]);
    let request = http_request(&server.address, "POST", &["Connection: close"], LIST);
    let mut held = [server.connect(), server.connect()];
    // A request that is not complete keeps its connection.
    for stream in &mut held {
        stream.write_all(b"POST /mcp HTTP/1.1\r\n").unwrap();
    }
    let mut waiting = server.connect();
    waiting.write_all(request.as_bytes()).unwrap();
    waiting
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    assert!(
        waiting.read(&mut [0; 16]).is_err(),
        "a third connection is served beside two"
    );
    drop(held);
    waiting.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn p58_without_tokens_the_rate_counts_by_address() {
    let server = HttpServer::start(&["--spec", &petstore(), "--mock", "client_rate_limit: 2"]);
    assert_eq!([ask(&server, &[]).0, ask(&server, &[]).0], [200, 200]);
    wait_until("no request is refused for its rate", || {
        ask(&server, &[]).0 == 429
    });
}
