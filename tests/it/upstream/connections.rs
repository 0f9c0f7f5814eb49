//! Connections to the API that fail: a class for the model, the cause for the operator.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::support::certificates::Authority;
use crate::support::upstream::{read_request, serve_connections};
use crate::support::{Session, SpecFile, listener, reply, text};

/// Returns the text that the model reads of a call of an API at `url`, and the whole log.
fn failed_call(url: &str) -> (String, String) {
    let spec = SpecFile::with_paths(&json!({"/a": {"post": {"operationId": "a"}}}));
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", url]);
    let result = session.call("a", &json!({}));
    assert_eq!(result["isError"], true, "{result}");
    (text(&result).to_owned(), session.end())
}

#[test]
fn the_model_reads_why_there_is_no_connection_and_the_log_says_the_cause() {
    let closed = {
        let (listener, url) = listener();
        drop(listener);
        url
    };
    let authority = Authority::new();
    let plain = serve_connections(|_, mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = stream.read(&mut [0]);
    });
    let http2 = serve_connections(|_, mut stream| {
        let _ = stream.read(&mut [0; 1 << 10]);
        // What a server of HTTP/2 says to a client that does not begin with the preface: SETTINGS
        // and GOAWAY (RFC 9113).
        let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let _ = stream.write_all(&[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    });
    for (url, class, cause) in [
        (
            "http://no-such-host.invalid:8080",
            "its name does not resolve",
            "dns error",
        ),
        (
            closed.as_str(),
            "it refused the connection",
            "Connection refused",
        ),
        (
            &authority.serve(),
            "its certificate is not trusted; whoever runs this server can name its authority with --ca-cert",
            "invalid peer certificate: UnknownIssuer",
        ),
        (
            &plain.replace("http://", "https://"),
            "it does not speak TLS on that port",
            "received corrupt message",
        ),
        (
            &http2,
            "an API that speaks only HTTP/2 is called over https",
            "invalid HTTP",
        ),
    ] {
        let (told, logs) = failed_call(url);
        assert!(told.contains(class), "{url}: {told}");
        let (_, authority) = url.split_once("://").unwrap();
        let (host, port) = authority.rsplit_once(':').unwrap();
        assert!(
            !told.contains(host) && !told.contains(port),
            "{url}: {told}"
        );
        let warning = logs
            .lines()
            .find(|line| line.contains("WARN") && line.contains("the call failed"));
        assert!(
            warning.is_some_and(|line| line.contains(cause)),
            "{url}: {logs}"
        );
    }
}

#[test]
fn p41_the_cause_in_the_log_holds_neither_the_query_nor_a_credential() {
    let (listener, url) = listener();
    drop(listener);
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"},
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}}},
            "paths": {"/a": {"get": {"operationId": "a", "security": [{"key": []}]}}}})
        .to_string(),
    );
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &url,
        "--log-level",
        "debug",
    ];
    let mut session = Session::start_with(&args, &[("OPENAPI_MCP_AUTH_KEY", "a-very-secret-key")]);
    let result = session.call("a", &json!({}));
    assert!(
        text(&result).contains("it refused the connection"),
        "{result}"
    );
    let logs = session.end();
    assert!(
        logs.contains("Connection refused") && !logs.contains("a-very-secret-key"),
        "{logs}"
    );
}

/// The number of connections over which three calls of an API leave that sends this header.
fn connections_with(header: &'static str) -> usize {
    let used = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&used);
    let url = serve_connections(move |number, stream| {
        let mut reader = std::io::BufReader::new(&stream);
        while read_request(&mut reader).is_some() {
            seen.lock().unwrap().insert(number);
            let _ = (&stream).write_all(&reply(
                200,
                &[header, "Content-Type: application/json"],
                b"{}",
            ));
        }
    });
    let spec = SpecFile::with_paths(&json!({"/a": {"post": {"operationId": "a"}}}));
    let mut session = Session::start(&["serve", "--spec", spec.path(), "--base-url", &url]);
    for _ in 0..3 {
        assert_eq!(session.call("a", &json!({}))["isError"], false);
    }
    used.lock().unwrap().len()
}

#[test]
fn no_request_leaves_on_a_connection_that_the_api_is_about_to_close() {
    assert_eq!(connections_with("X-Other: 1"), 1);
    assert_eq!(connections_with("Keep-Alive: timeout=120"), 1);
    // The API closes it within a second.
    assert_eq!(connections_with("Keep-Alive: max=9, Timeout=1"), 3);
    // The first reply tells for how long connections are kept.
    assert_eq!(connections_with("Keep-Alive: timeout=60"), 2);
}
