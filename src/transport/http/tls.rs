//! TLS on the listener: a certificate and its key from two files, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::admission::RELOAD_INTERVAL;

/// A certificate chain and its key, in PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    config: Arc<ServerConfig>,
    seen: [u8; 32],
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// The fault, with the name of the file.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, String> {
        let files = read_pair(certificate, key)?;
        Ok(Self {
            config: Arc::new(
                tls_config(&files)
                    .map_err(|problem| describe_problem(certificate, key, &problem))?,
            ),
            seen: digest_pair(&files),
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        })
    }

    /// Returns the configuration with which connections are accepted, now and after the files have
    /// changed.
    pub(crate) fn watch(&self, stop: &CancellationToken) -> watch::Receiver<Arc<ServerConfig>> {
        let (sender, receiver) = watch::channel(Arc::clone(&self.config));
        tokio::spawn(
            stop.clone()
                .run_until_cancelled_owned(self.clone().reload(sender)),
        );
        receiver
    }

    /// Looks at the files from time to time. A pair that is of no use, as one that is only half
    /// replaced, changes nothing.
    async fn reload(mut self, sender: watch::Sender<Arc<ServerConfig>>) {
        let mut told = String::new();
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            let outcome = read_pair(&self.certificate, &self.key).and_then(|files| {
                let seen = digest_pair(&files);
                if seen == self.seen {
                    return Ok(None);
                }
                let config = tls_config(&files)
                    .map_err(|problem| describe_problem(&self.certificate, &self.key, &problem))?;
                self.seen = seen;
                Ok(Some(config))
            });
            match outcome {
                Ok(None) => told.clear(),
                Ok(Some(config)) => {
                    told.clear();
                    let _ = sender.send(Arc::new(config));
                    tracing::info!(
                        "the certificate was read again from `{}`",
                        self.certificate.display()
                    );
                }
                Err(problem) if problem != told => {
                    tracing::warn!("the certificate stays what it was: {problem}");
                    told = problem;
                }
                Err(_) => {}
            }
        }
    }
}

fn describe_problem(certificate: &Path, key: &Path, problem: &str) -> String {
    format!(
        "`{}` with `{}`: {problem}",
        certificate.display(),
        key.display()
    )
}

/// The bytes of both files.
fn read_pair(certificate: &Path, key: &Path) -> Result<[Vec<u8>; 2], String> {
    let read_file = |path: &Path| {
        std::fs::read(path).map_err(|error| format!("`{}` cannot be read: {error}", path.display()))
    };
    Ok([read_file(certificate)?, read_file(key)?])
}

fn digest_pair([certificate, key]: &[Vec<u8>; 2]) -> [u8; 32] {
    let mut digest = Sha256::new();
    digest.update(certificate);
    digest.update(key);
    digest.finalize().into()
}

fn tls_config([certificate, key]: &[Vec<u8>; 2]) -> Result<ServerConfig, String> {
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the certificate is not valid PEM: {error}"))?;
    if chain.is_empty() {
        return Err("there is no certificate (`-----BEGIN CERTIFICATE-----`)".into());
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| "there is no private key that is not encrypted".to_owned())?;
    let mut config =
        ServerConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|error| match error {
                rustls::Error::InconsistentKeys(_) => {
                    "the key belongs to another certificate".to_owned()
                }
                other => other.to_string(),
            })?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
