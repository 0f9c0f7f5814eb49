//! Certificates, made when the tests run.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CertifiedIssuer, CertifiedKey, IsCa, KeyPair,
    generate_simple_self_signed,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use super::reply;
use super::upstream::serve_connections;

/// Writes a new certificate of `localhost` and its key as `tls.crt` and `tls.key`, and gives the
/// certificate.
pub fn write_self_signed(directory: &Path) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    std::fs::write(directory.join("tls.crt"), cert.pem()).expect("written");
    std::fs::write(directory.join("tls.key"), signing_key.serialize_pem()).expect("written");
    cert.der().clone()
}

/// A certificate authority that only this test knows, and the PEM files `ca.pem`, `client.pem` and
/// `client.key` of it and of a client.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("made");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer =
            CertifiedIssuer::self_signed(params, KeyPair::generate().expect("made")).expect("made");
        let folder = tempfile::tempdir().expect("made");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("made");
        let authority = Self { issuer, folder };
        authority.write_issued("client");
        authority
    }

    fn issue(&self, name: &str) -> (Certificate, KeyPair) {
        let key = KeyPair::generate().expect("made");
        let params = CertificateParams::new(vec![name.into()]).expect("made");
        (params.signed_by(&key, &self.issuer).expect("made"), key)
    }

    /// Writes a certificate of that name as `NAME.pem`, and its key as `NAME.key`.
    pub fn write_issued(&self, name: &str) {
        let (certificate, key) = self.issue(name);
        std::fs::write(self.file(&format!("{name}.pem")), certificate.pem()).expect("made");
        std::fs::write(self.file(&format!("{name}.key")), key.serialize_pem()).expect("made");
    }

    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// TLS of `localhost`, by a certificate of this authority; clients may show one of it.
    pub fn server_config(&self) -> ServerConfig {
        let (certificate, key) = self.issue("localhost");
        let mut roots = RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("made");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider))
                .allow_unauthenticated()
                .build()
                .expect("made");
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("made")
            .with_client_cert_verifier(verifier)
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivateKeyDer::try_from(key.serialize_der()).expect("made"),
            )
            .expect("made")
    }

    /// An API on `localhost` that answers whether its client showed a certificate, and its address.
    pub fn serve(&self) -> String {
        serve_tls(self.server_config())
    }
}

/// An API on `localhost` with the certificate of an authority, signed by itself and written as
/// `own.pem`, and its address.
pub fn serve_self_signed(directory: &Path) -> String {
    let mut params = CertificateParams::new(vec!["localhost".into()]).expect("made");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().expect("made");
    let certificate = params.self_signed(&key).expect("made");
    std::fs::write(directory.join("own.pem"), certificate.pem()).expect("written");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("made")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).expect("made"),
        );
    serve_tls(config.expect("made"))
}

fn serve_tls(config: ServerConfig) -> String {
    let config = Arc::new(config);
    let url = serve_connections(move |_, stream| {
        let mut tls = StreamOwned::new(
            ServerConnection::new(Arc::clone(&config)).expect("made"),
            stream,
        );
        let (mut head, mut byte) = (Vec::new(), [0]);
        while !head.ends_with(b"\r\n\r\n") && tls.read_exact(&mut byte).is_ok() {
            head.push(byte[0]);
        }
        let body = json!({"known": tls.conn.peer_certificates().is_some()}).to_string();
        let bytes = reply(
            200,
            &["Content-Type: application/json", "Connection: close"],
            body.as_bytes(),
        );
        let _ = tls.write_all(&bytes);
        tls.conn.send_close_notify();
        let _ = tls.flush();
    });
    url.replace("http://127.0.0.1", "https://localhost")
}
