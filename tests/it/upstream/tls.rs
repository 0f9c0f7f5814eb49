//! Certificates of the API, of its clients, and of proxies.

use serde_json::{Value, json};

use crate::support::certificates::{Authority, serve_self_signed};
use crate::support::{HttpServer, Session, SpecFile, Upstream, petstore, reply, run, stderr, text};

fn document(security: &Value) -> SpecFile {
    SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "components": {"securitySchemes": {"certificate": {"type": "mutualTLS"}}},
            "paths": {"/a": {"get": {"operationId": "a", "security": security}}}})
        .to_string(),
    )
}

#[test]
fn a_certificate_authority_is_trusted_only_when_it_is_named() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (url, spec) = (authority.serve(), document(&json!([])));
    let call = |more: &[&str]| {
        let mut session =
            Session::start(&[&["serve", "--spec", spec.path(), "--base-url", &url], more].concat());
        let result = session.call("a", &json!({}));
        (
            result["structuredContent"]["known"].as_bool(),
            session.end(),
        )
    };
    assert_eq!(
        call(&["--ca-cert", &authority.file("ca.pem")]).0,
        Some(false)
    );
    assert_eq!(call(&[]).0, None);
    assert_eq!(call(&["--ca-cert", &stranger.file("ca.pem")]).0, None);
    let (known, logs) = call(&["--insecure-upstream"]);
    assert_eq!(known, Some(false));
    assert!(logs.contains("NOT CHECKED"), "{logs}");
}

#[test]
fn a_self_signed_certificate_is_trusted_if_it_is_the_one_that_is_named() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [url, _] = folders
        .each_ref()
        .map(|folder| serve_self_signed(folder.path()));
    let spec = document(&json!([]));
    let is_answered = |url: &str, folder: &tempfile::TempDir| {
        let certificate = folder.path().join("own.pem").display().to_string();
        let mut session = Session::start(&[
            "serve",
            "--spec",
            spec.path(),
            "--base-url",
            url,
            "--ca-cert",
            &certificate,
        ]);
        session.call("a", &json!({}))["isError"] == false
    };
    let [own, other] = &folders;
    assert!(is_answered(&url, own));
    assert!(!is_answered(&url, other), "a certificate of the same name");
    let by_address = url.replace("localhost", "127.0.0.1");
    assert!(
        !is_answered(&by_address, own),
        "a name that it does not have"
    );
}

#[test]
fn a_client_certificate_meets_mutual_tls() {
    let authority = Authority::new();
    let (url, spec) = (authority.serve(), document(&json!([{"certificate": []}])));
    let ca = authority.file("ca.pem");
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        &url,
        "--ca-cert",
        &ca,
    ];
    let refused = Session::start(&args).call("a", &json!({}));
    assert!(
        refused["isError"] == true && text(&refused).contains("`client_cert` and `client_key`"),
        "{refused}"
    );
    let (certificate, key) = (authority.file("client.pem"), authority.file("client.key"));
    let mut session = Session::start(
        &[
            &args[..],
            &[
                &format!("client_cert: {certificate}"),
                &format!("client_key: {key}"),
            ],
        ]
        .concat(),
    );
    let result = session.call("a", &json!({}));
    assert_eq!(result["structuredContent"]["known"], true, "{result}");

    let other = Authority::new().file("client.key");
    for (more, expected) in [
        (
            format!("client_key: {key}"),
            "`client_key` needs `client_cert`",
        ),
        (format!("client_cert: {key}"), "contains no certificate"),
        (
            format!("client_cert: {certificate}"),
            "`client_key`: the file",
        ),
        (
            format!("client_cert: {certificate}\nclient_key: {other}"),
            "cannot be read",
        ),
        (
            "--ca-cert=/no/such/file".to_owned(),
            "--ca-cert: the file `/no/such/file` cannot be read",
        ),
    ] {
        let output = run(&[&args[..], &[&more]].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(
            stderr(&output).contains(expected),
            "{more:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn p49_a_client_certificate_is_shown_to_the_apis_own_origin_only() {
    let authority = Authority::new();
    let (own, other) = (authority.serve(), authority.serve());
    let operation =
        |id: &str, url: &str| json!({"get": {"operationId": id, "servers": [{"url": url}]}});
    let spec = SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": own}],
            "paths": {"/own": operation("own", &own), "/other": operation("other", &other)}})
        .to_string(),
    );
    let files = ["ca.pem", "client.pem", "client.key"].map(|name| authority.file(name));
    let [ca, certificate, key] = files.each_ref().map(String::as_str);
    let serve = [
        "serve",
        "--spec",
        spec.path(),
        &format!("client_cert: {certificate}"),
        &format!("client_key: {key}"),
    ];
    let trusting = [&serve[..], &["--ca-cert", ca]].concat();
    let mut session = Session::start(&trusting);
    assert_eq!(
        session.call("own", &json!({}))["structuredContent"]["known"],
        true
    );
    assert_eq!(
        session.call("other", &json!({}))["structuredContent"]["known"],
        false
    );
    let mut allowed = Session::start(
        &[
            &trusting[..],
            &[&format!("credential_origin: [\"{other}\"]")],
        ]
        .concat(),
    );
    assert_eq!(
        allowed.call("other", &json!({}))["structuredContent"]["known"],
        true
    );
    // An unknown authority is an error, but for the API's own origin.
    let mut insecure = Session::start(&[&serve[..], &["--insecure-upstream"]].concat());
    assert_eq!(
        insecure.call("own", &json!({}))["structuredContent"]["known"],
        true
    );
    assert_eq!(insecure.call("other", &json!({}))["isError"], true);
}

#[test]
fn p50_a_proxy_is_used_when_asked_for_and_never_because_of_the_environment() {
    let proxy = Upstream::start(Box::new(|_| {
        reply(
            200,
            &["Content-Type: application/json"],
            b"{\"by\":\"proxy\"}",
        )
    }));
    let (upstream, spec) = (Upstream::echo(), document(&json!([])));
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let unasked = [
        ("HTTP_PROXY", proxy.url.as_str()),
        ("http_proxy", &proxy.url),
        ("ALL_PROXY", &proxy.url),
    ];
    Session::start_with(&args, &unasked).call("a", &json!({}));
    assert_eq!((upstream.received().len(), proxy.received().len()), (1, 0));

    let asked = [&args[..], &["--proxy", &proxy.url, "proxy_auth_env: LOGIN"]].concat();
    let result = Session::start_with(&asked, &[("LOGIN", "ann:s3cret")]).call("a", &json!({}));
    assert_eq!(result["structuredContent"]["by"], "proxy");
    let request = proxy.take_one();
    assert_eq!(request.line, format!("GET {}/a HTTP/1.1", upstream.url));
    assert_eq!(
        request.header("proxy-authorization"),
        Some("Basic YW5uOnMzY3JldA==")
    );

    let output = run(&[&args[..], &["--proxy", "http://ann:hunter2@h.example"]].concat());
    assert!(
        output.status.code() == Some(2)
            && stderr(&output).contains("`proxy_auth_env`")
            && !stderr(&output).contains("hunter2")
    );
}

/// `--insecure-upstream` holds for the API alone: an attacker who can pass for the issuer can forge
/// tokens.
#[test]
fn p49_an_insecure_api_does_not_make_the_issuer_of_tokens_insecure() {
    let authority = Authority::new();
    let issuer = authority.serve();
    let (certificate, key) = (authority.file("client.pem"), authority.file("client.key"));
    let server = HttpServer::start(&[
        "--spec",
        &petstore(),
        "--base-url",
        "https://localhost:1",
        "--insecure-upstream",
        &format!("client_cert: {certificate}"),
        &format!("client_key: {key}"),
        "--oauth-issuer",
        &issuer,
    ]);
    let logs = server.logged("cannot be read");
    assert!(
        logs.contains("ertificate") && !logs.contains("names no issuer"),
        "{logs}"
    );
}

#[test]
fn p41_a_proxys_password_that_comes_back_is_taken_out() {
    let proxy = Upstream::start(Box::new(|request| {
        let basic = request.header("proxy-authorization").unwrap_or_default();
        let echo =
            json!({"basic": basic, "password": "hunter2-hunter2", "pair": "user:hunter2-hunter2"});
        reply(
            200,
            &["Content-Type: application/json"],
            echo.to_string().as_bytes(),
        )
    }));
    let spec = SpecFile::with_paths(&json!({"/a": {"get": {"operationId": "call"}}}));
    let args = [
        "serve",
        "--spec",
        spec.path(),
        "--base-url",
        "http://api.example",
        "--proxy",
        &proxy.url,
        "proxy_auth_env: PAIR",
    ];
    let result =
        Session::start_with(&args, &[("PAIR", "user:hunter2-hunter2")]).call("call", &json!({}));
    assert_eq!(
        proxy.take_one().header("proxy-authorization"),
        Some("Basic dXNlcjpodW50ZXIyLWh1bnRlcjI=")
    );
    assert_eq!(
        result["structuredContent"],
        json!({"basic": "Basic [redacted]", "password": "[redacted]", "pair": "[redacted]"}),
        "{result}"
    );
}
