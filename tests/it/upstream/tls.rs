//! Certificates of the API, of its clients, and of proxies.

use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use crate::support::{Session, SpecFile, Upstream, command, reply, run, stderr};

/// An authority that nobody knows but this test, and PEM files of it and of a client.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        let key = KeyPair::generate().unwrap();
        let client = CertificateParams::new(vec!["client".into()])
            .unwrap()
            .signed_by(&key, &issuer)
            .unwrap();
        std::fs::write(folder.path().join("client.pem"), client.pem()).unwrap();
        std::fs::write(folder.path().join("client.key"), key.serialize_pem()).unwrap();
        Self { issuer, folder }
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// An API on `localhost` that answers whether its client showed a certificate, and its address.
    fn serve(&self) -> String {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".into()])
            .unwrap()
            .signed_by(&key, &self.issuer)
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider))
            .allow_unauthenticated()
            .build()
            .unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
            )
            .unwrap();
        let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").unwrap());
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut tls = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), stream);
                let (mut head, mut byte) = (Vec::new(), [0]);
                while !head.ends_with(b"\r\n\r\n") && tls.read_exact(&mut byte).is_ok() {
                    head.push(byte[0]);
                }
                let body = json!({"known": tls.conn.peer_certificates().is_some()}).to_string();
                let _ = tls.write_all(&reply(
                    200,
                    &["Content-Type: application/json", "Connection: close"],
                    body.as_bytes(),
                ));
                tls.conn.send_close_notify();
                let _ = tls.flush();
            }
        });
        format!("https://localhost:{port}")
    }
}

fn document(security: &Value) -> SpecFile {
    SpecFile::new(
        &json!({"openapi": "3.1.0", "info": {"title": "T"}, "components": {"securitySchemes": {"certificate": {"type": "mutualTLS"}}},
            "paths": {"/a": {"get": {"operationId": "a", "security": security}}}})
        .to_string(),
    )
}

#[test]
fn an_authority_of_ones_own_is_trusted_when_named_and_nothing_else_is() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (url, spec) = (authority.serve(), document(&json!([])));
    let call = |more: &[&str]| {
        let mut session = Session::start(&[&["serve", "--spec", spec.path(), "--base-url", &url], more].concat());
        let result = session.call("a", &json!({}));
        (result["structuredContent"]["known"].as_bool(), session.end())
    };
    assert_eq!(call(&["--ca-cert", &authority.file("ca.pem")]).0, Some(false));
    assert_eq!(call(&[]).0, None);
    assert_eq!(call(&["--ca-cert", &stranger.file("ca.pem")]).0, None);
    let (known, logs) = call(&["--insecure-upstream"]);
    assert_eq!(known, Some(false));
    assert!(logs.contains("NOT CHECKED"), "{logs}");
}

#[test]
fn a_client_certificate_meets_mutual_tls() {
    let authority = Authority::new();
    let (url, spec) = (authority.serve(), document(&json!([{"certificate": []}])));
    let ca = authority.file("ca.pem");
    let args = ["serve", "--spec", spec.path(), "--base-url", &url, "--ca-cert", &ca];
    let refused = Session::start(&args).call("a", &json!({}));
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(
        refused["isError"] == true && text.contains("--client-cert and --client-key"),
        "{text}"
    );
    let (certificate, key) = (authority.file("client.pem"), authority.file("client.key"));
    let mut session = Session::start(&[&args[..], &["--client-cert", &certificate, "--client-key", &key]].concat());
    let result = session.call("a", &json!({}));
    assert_eq!(result["structuredContent"]["known"], true, "{result}");

    let other = Authority::new().file("client.key");
    for (more, expected) in [
        (&["--client-key", &key][..], "--client-key needs --client-cert"),
        (&["--client-cert", &key], "holds no certificate"),
        (&["--client-cert", &certificate], "--client-key: the file"),
        (&["--client-cert", &certificate, "--client-key", &other], "cannot be read"),
        (
            &["--ca-cert", "/no/such/file"],
            "--ca-cert: the file `/no/such/file` cannot be read",
        ),
    ] {
        let output = run(&[&args[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}");
        assert!(stderr(&output).contains(expected), "{more:?}: {}", stderr(&output));
    }
}

#[test]
fn a_proxy_is_used_when_asked_for_and_never_because_of_the_environment() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let proxy = Upstream::start(Box::new(move |request| {
        log.lock().unwrap().push(request.clone());
        reply(200, &["Content-Type: application/json"], b"{\"by\":\"proxy\"}")
    }));
    let (upstream, spec) = (Upstream::echo(), document(&json!([])));
    let args = ["serve", "--spec", spec.path(), "--base-url", &upstream.url];
    let mut unasked = command(&args);
    unasked
        .env("HTTP_PROXY", &proxy.url)
        .env("http_proxy", &proxy.url)
        .env("ALL_PROXY", &proxy.url);
    Session::start_with(unasked).call("a", &json!({}));
    assert_eq!((upstream.received().len(), proxy.received().len()), (1, 0));

    let mut asked = command(&[&args[..], &["--proxy", &proxy.url, "--proxy-auth-env", "LOGIN"]].concat());
    asked.env("LOGIN", "ann:s3cret");
    let result = Session::start_with(asked).call("a", &json!({}));
    assert_eq!(result["structuredContent"]["by"], "proxy");
    let request = seen.lock().unwrap().remove(0);
    assert_eq!(request.line, format!("GET {}/a HTTP/1.1", upstream.url));
    assert_eq!(request.header("proxy-authorization"), Some("Basic YW5uOnMzY3JldA=="));

    let output = run(&[&args[..], &["--proxy", "http://ann:hunter2@h.example"]].concat());
    assert!(output.status.code() == Some(2) && stderr(&output).contains("--proxy-auth-env") && !stderr(&output).contains("hunter2"));
}

/// `--insecure-upstream` is about the API: whoever can pass for the issuer can make tokens up.
#[test]
fn an_insecure_api_does_not_make_the_issuer_of_tokens_insecure() {
    let authority = Authority::new();
    let issuer = authority.serve();
    let (certificate, key) = (authority.file("client.pem"), authority.file("client.key"));
    let server = crate::support::HttpServer::start(&[
        "--spec",
        &crate::support::petstore(),
        "--base-url",
        "https://localhost:1",
        "--insecure-upstream",
        "--client-cert",
        &certificate,
        "--client-key",
        &key,
        "--oauth-issuer",
        &issuer,
    ]);
    let logs = server.logged("cannot be read");
    assert!(logs.contains("ertificate") && !logs.contains("names no issuer"), "{logs}");
}

#[test]
fn p41_a_proxys_password_that_comes_back_is_taken_out() {
    let proxy = Upstream::start(Box::new(|request| {
        let basic = request.header("proxy-authorization").unwrap_or_default();
        let echo = json!({"basic": basic, "password": "hunter2-hunter2", "pair": "user:hunter2-hunter2"});
        reply(200, &["Content-Type: application/json"], echo.to_string().as_bytes())
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
        "--proxy-auth-env",
        "PAIR",
    ];
    let mut command = command(&args);
    command.env("PAIR", "user:hunter2-hunter2");
    let result = Session::start_with(command).call("call", &json!({}));
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
