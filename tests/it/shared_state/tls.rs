//! `rediss`: a server whose certificate is checked.

use serde_json::json;

use super::{KEY, sharing};
use crate::support::certificates::Authority;
use crate::support::{Redis, Session, SpecFile, Upstream, command, petstore, stderr, wait_until};

fn spec() -> SpecFile {
    SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "a"}}}))
}

/// A server that takes encrypted connections on its second port.
fn start(authority: &Authority) -> Option<Redis> {
    authority.write_issued("localhost");
    let (certificate, key, ca) = (
        authority.file("localhost.pem"),
        authority.file("localhost.key"),
        authority.file("ca.pem"),
    );
    let options = [
        ["--tls-port", "TLS_PORT"],
        ["--tls-cert-file", &certificate],
        ["--tls-key-file", &key],
        ["--tls-ca-cert-file", &ca],
        ["--tls-auth-clients", "no"],
    ];
    Redis::start_with(options.as_flattened())
}

#[test]
fn an_encrypted_connection_is_used_where_the_certificate_is_accepted() {
    let authority = Authority::new();
    let Some(redis) = start(&authority) else {
        return;
    };
    let (upstream, spec) = (Upstream::echo(), spec());
    let (url, ca) = (
        format!("rediss://localhost:{}", redis.tls_port),
        authority.file("ca.pem"),
    );
    let more = sharing(&url, &["--ca-cert", &ca, "rate_limit: 50"]);
    let mut session = Session::serving_with(&spec, &upstream, &more, &[KEY]);
    session.logged(&format!("shared state at {url}"));
    // A limit that is not reached is soon gone again, and a server that answers late is passed by.
    wait_until("the limit is shared", || {
        assert_eq!(session.call("a", &json!({}))["isError"], false);
        redis.keys().len() == 1
    });
}

#[test]
fn a_certificate_that_is_not_accepted_ends_the_start() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let Some(redis) = start(&authority) else {
        return;
    };
    let (ca, other, spec) = (
        authority.file("ca.pem"),
        stranger.file("ca.pem"),
        petstore(),
    );
    for (host, more) in [
        ("localhost", &[][..]),
        ("localhost", &["--ca-cert", &other]),
        ("localhost", &["--insecure-upstream"]),
        ("127.0.0.1", &["--ca-cert", &ca]),
    ] {
        let url = format!("rediss://{host}:{}", redis.tls_port);
        let more = [&["--spec", &spec, "--mock"], more].concat();
        let args = [&["serve"], &sharing(&url, &more)[..]].concat();
        let output = command(&args).envs([KEY]).output().unwrap();
        let said = stderr(&output);
        assert!(
            output.status.code() == Some(2) && said.contains("its certificate is not accepted"),
            "{url} {more:?}: {said}"
        );
    }
}

#[test]
fn a_server_without_tls_is_not_spoken_to_in_the_clear() {
    let Some(redis) = Redis::start() else { return };
    let url = format!("rediss://localhost:{}", redis.port);
    let (upstream, spec) = (Upstream::echo(), spec());
    let mut session = Session::serving_with(
        &spec,
        &upstream,
        &sharing(&url, &["rate_limit: 50"]),
        &[KEY],
    );
    session.logged("cannot be used yet");
    assert_eq!(session.call("a", &json!({}))["isError"], false);
    assert!(redis.keys().is_empty());
}
