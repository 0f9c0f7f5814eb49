//! HTTPS on our own listener: both protocol versions, certificates that change, and clients that do
//! not speak it.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::certificates::write_self_signed as certificate;
use crate::support::http_server::http_request;
use crate::support::{HttpServer, LIST, TIMEOUT, petstore, run, stderr, within};

fn trusting(certificate: &CertificateDer<'static>) -> ClientConfig {
    trusting_with(certificate, rustls::DEFAULT_VERSIONS)
}

fn trusting_with(
    certificate: &CertificateDer<'static>,
    versions: &[&'static rustls::SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// The answer to a list over TLS, or why there is none.
fn ask(server: &HttpServer, config: ClientConfig) -> std::io::Result<String> {
    let name = "localhost".to_owned().try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(&server.address)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut tls = StreamOwned::new(connection, stream);
    tls.write_all(http_request("localhost", "POST", &["Connection: close"], LIST).as_bytes())?;
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
        &format!("tls_cert: {}", certificate.display()),
        &format!("tls_key: {}", key.display()),
    ])
}

#[test]
fn p57_a_certificate_is_served_and_replaced_without_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let old = certificate(directory.path());
    let server = server(directory.path());
    assert!(
        server.logs().contains("listening on https://"),
        "{}",
        server.logs()
    );
    assert!(
        ask(&server, trusting(&old))
            .unwrap()
            .starts_with("HTTP/1.1 200 ")
    );
    // Only the certificate is new, and the key does not match: the old pair stays.
    let key = std::fs::read(directory.path().join("tls.key")).unwrap();
    let new = certificate(directory.path());
    let new_key = std::fs::read(directory.path().join("tls.key")).unwrap();
    std::fs::write(directory.path().join("tls.key"), key).unwrap();
    server.logged("the certificate stays what it was");
    assert!(
        ask(&server, trusting(&old))
            .unwrap()
            .starts_with("HTTP/1.1 200 ")
    );
    std::fs::write(directory.path().join("tls.key"), new_key).unwrap();
    server.logged("the certificate was read again");
    assert!(
        ask(&server, trusting(&new))
            .unwrap()
            .starts_with("HTTP/1.1 200 ")
    );
    assert!(
        ask(&server, trusting(&old)).is_err(),
        "the old certificate is gone"
    );
}

#[test]
fn health_trusts_a_certificate_that_it_is_told_of() {
    let directory = tempfile::tempdir().unwrap();
    certificate(directory.path());
    let server = server(directory.path());
    let url = format!(
        "https://{}/healthz",
        server.address.replace("127.0.0.1", "localhost")
    );
    let file = directory.path().join("tls.crt").display().to_string();
    let well = run(&["health", &url, "--ca-cert", &file]);
    assert_eq!(well.status.code(), Some(0), "{}", stderr(&well));
    let unknown = run(&["health", &url]);
    assert!(
        unknown.status.code() == Some(1) && stderr(&unknown).contains("is not ready"),
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
fn p57_tls_1_2_and_1_3_are_spoken() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = certificate(directory.path());
    let server = server(directory.path());
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let answer = ask(&server, trusting_with(&certificate, &[version])).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 "), "{version:?}: {answer}");
    }
}

#[test]
fn p57_both_versions_of_http_are_spoken() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = certificate(directory.path());
    let server = server(directory.path());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let port = server.address.rsplit(':').next().unwrap();
    for (protocol, version) in [
        ("h2", http::Version::HTTP_2),
        ("http/1.1", http::Version::HTTP_11),
    ] {
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
            assert_eq!(
                (response.status().as_u16(), response.version()),
                (200, version)
            );
            assert!(response.text().await.unwrap().contains("list_pets"));
        });
    }
}

#[test]
fn p32_p57_a_client_that_does_not_speak_tls_learns_nothing_and_delays_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let certificate = certificate(directory.path());
    let server = server(directory.path());
    let mut silent: Vec<TcpStream> = (0..50)
        .map(|_| TcpStream::connect(&server.address).unwrap())
        .collect();
    let plain = server.get("/healthz");
    assert!(!plain.contains("ok"), "{plain}");
    assert!(
        ask(&server, trusting(&certificate))
            .unwrap()
            .starts_with("HTTP/1.1 200 ")
    );
    // The server waits 10 s for a handshake.
    let started = Instant::now();
    for stream in &mut silent {
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap_or(0), 0);
    }
    assert!(started.elapsed() < within(15), "{:?}", started.elapsed());
}

#[test]
fn a_certificate_and_a_key_that_do_not_match_are_refused_at_start() {
    let directory = tempfile::tempdir().unwrap();
    certificate(directory.path());
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::copy(path("tls.key"), path("other.key")).unwrap();
    certificate(directory.path());
    let spec = petstore();
    for (certificate, key, expected) in [
        (
            path("tls.crt"),
            path("other.key"),
            "belongs to another certificate",
        ),
        (path("tls.key"), path("tls.key"), "there is no certificate"),
        (path("tls.crt"), path("tls.crt"), "there is no private key"),
        (path("tls.crt"), path("nothing.key"), "cannot be read"),
        (path("tls.crt"), String::new(), "`tls_key`"),
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
        ];
        let files = [
            format!("tls_cert: {certificate}"),
            format!("tls_key: {key}"),
        ];
        let given = if key.is_empty() { 1 } else { 2 };
        args.extend(files.iter().take(given).map(String::as_str));
        let output = run(&args);
        let text = stderr(&output);
        assert!(
            output.status.code() == Some(2) && text.contains(expected),
            "{expected}: {text}"
        );
        assert!(!text.contains("PRIVATE"), "{text}");
    }
}
