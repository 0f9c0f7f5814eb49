//! HTTPS on our own listener: both protocol versions, certificates that change, and clients that do not speak it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::{HttpServer, PATIENCE, command, petstore, stderr};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;

/// Writes a new certificate and its key, and gives the certificate.
fn certificate(directory: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("tls.crt"), cert.pem()).unwrap();
    std::fs::write(directory.join("tls.key"), signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

fn trusting(certificate: &CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The answer to a list over TLS, or why there is none.
fn ask(server: &HttpServer, config: ClientConfig) -> std::io::Result<String> {
    let name = "localhost".to_owned().try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(&server.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut tls = StreamOwned::new(connection, stream);
    write!(
        tls,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{LIST}",
        LIST.len()
    )?;
    let mut answer = Vec::new();
    tls.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn server(directory: &Path) -> HttpServer {
    let (certificate, key) = (directory.join("tls.crt"), directory.join("tls.key"));
    HttpServer::start(&[
        "--spec",
        &petstore(),
        "--mock",
        "--tls-cert",
        certificate.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ])
}

#[test]
fn a_certificate_is_served_and_replaced_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let old = certificate(directory.path());
    let server = server(directory.path());
    assert!(server.logs().contains("listening on https://"), "{}", server.logs());
    assert!(ask(&server, trusting(&old)).unwrap().starts_with("HTTP/1.1 200 "));
    // Half of a new pair: the old one stays.
    let key = std::fs::read(directory.path().join("tls.key")).unwrap();
    let new = certificate(directory.path());
    let new_key = std::fs::read(directory.path().join("tls.key")).unwrap();
    std::fs::write(directory.path().join("tls.key"), key).unwrap();
    let until = |what: &str| {
        let started = Instant::now();
        while !server.logs().contains(what) {
            assert!(started.elapsed() < Duration::from_secs(30), "{}", server.logs());
            std::thread::park_timeout(Duration::from_millis(50));
        }
    };
    until("the certificate stays what it was");
    assert!(ask(&server, trusting(&old)).unwrap().starts_with("HTTP/1.1 200 "));
    std::fs::write(directory.path().join("tls.key"), new_key).unwrap();
    until("the certificate was read again");
    assert!(ask(&server, trusting(&new)).unwrap().starts_with("HTTP/1.1 200 "));
    assert!(ask(&server, trusting(&old)).is_err(), "the old certificate is gone");
}

#[test]
fn health_trusts_a_certificate_that_it_is_told_of() {
    use crate::support::run;

    let directory = tempfile::tempdir().unwrap();
    certificate(directory.path());
    let server = server(directory.path());
    let url = format!("https://{}/healthz", server.address.replace("127.0.0.1", "localhost"));
    let file = directory.path().join("tls.crt").display().to_string();
    let well = run(&["health", &url, "--ca-cert", &file]);
    assert_eq!(well.status.code(), Some(0), "{}", stderr(&well));
    let unknown = run(&["health", &url]);
    assert!(
        unknown.status.code() == Some(1) && stderr(&unknown).contains("is not well"),
        "{}",
        stderr(&unknown)
    );
    let none = run(&["health", &url, "--ca-cert", "/nonexistent.pem"]);
    assert!(
        none.status.code() == Some(2) && stderr(&none).contains("--ca-cert"),
        "{}",
        stderr(&none)
    );
}

#[test]
fn both_versions_of_http_are_spoken() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = certificate(directory.path());
    let server = server(directory.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let port = server.address.rsplit(':').next().unwrap();
    for (protocol, version) in [("h2", http::Version::HTTP_2), ("http/1.1", http::Version::HTTP_11)] {
        let mut config = trusting(&certificate);
        config.alpn_protocols = vec![protocol.into()];
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(config)
            .no_proxy()
            .build()
            .unwrap();
        runtime.block_on(async {
            let request = client
                .post(format!("https://localhost:{port}/mcp"))
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .body(LIST);
            let response = request.send().await.unwrap();
            assert_eq!((response.status().as_u16(), response.version()), (200, version));
            assert!(response.text().await.unwrap().contains("list_pets"));
        });
    }
}

#[test]
fn who_does_not_speak_tls_learns_nothing_and_holds_up_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = certificate(directory.path());
    let server = server(directory.path());
    let mut silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let plain = server.raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(!plain.contains("ok"), "{plain}");
    assert!(ask(&server, trusting(&certificate)).unwrap().starts_with("HTTP/1.1 200 "));
    // A handshake that does not come is waited for 10 s.
    let started = Instant::now();
    for stream in &mut silent {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn files_that_are_no_pair_are_told_at_start() {
    let directory = tempfile::tempdir().unwrap();
    certificate(directory.path());
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::copy(path("tls.key"), path("other.key")).unwrap();
    certificate(directory.path());
    let spec = petstore();
    for (certificate, key, expected) in [
        (path("tls.crt"), path("other.key"), "belongs to another certificate"),
        (path("tls.key"), path("tls.key"), "there is no certificate"),
        (path("tls.crt"), path("tls.crt"), "there is no private key"),
        (path("tls.crt"), path("nothing.key"), "cannot be read"),
        (path("tls.crt"), String::new(), "--tls-key"),
    ] {
        let mut args = vec![
            "serve",
            "--spec",
            &spec,
            "--mock",
            "--transport",
            "http",
            "--bind",
            "127.0.0.1:0",
            "--tls-cert",
            &certificate,
        ];
        if !key.is_empty() {
            args.extend(["--tls-key", &key]);
        }
        let output = command(&args).output().unwrap();
        let text = stderr(&output);
        assert!(output.status.code() == Some(2) && text.contains(expected), "{expected}: {text}");
        assert!(!text.contains("PRIVATE"), "{text}");
    }
}
