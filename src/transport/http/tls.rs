//! TLS on the listener: a certificate and its key from two files, read again when they change.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::admission::watch_files;

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
        Self::of(certificate, key, read_pair(certificate, key)?)
    }

    fn of(certificate: &Path, key: &Path, (files, seen): ReadPair) -> Result<Self, String> {
        let config = tls_config(&files).map_err(|problem| {
            let (certificate, key) = (certificate.display(), key.display());
            format!("`{certificate}` with `{key}`: {problem}")
        })?;
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            config: Arc::new(config),
            seen,
        })
    }

    /// Returns the configuration with which connections are accepted, now and after the files have
    /// changed.
    pub(crate) fn watch(&self, stop: &CancellationToken) -> watch::Receiver<Arc<ServerConfig>> {
        let (sender, receiver) = watch::channel(Arc::clone(&self.config));
        let reloading = self.clone().reload(sender);
        tokio::spawn(stop.clone().run_until_cancelled_owned(reloading));
        receiver
    }

    /// Looks at the files from time to time. A pair that is of no use, as one that is only half
    /// replaced, changes nothing.
    async fn reload(mut self, sender: watch::Sender<Arc<ServerConfig>>) {
        watch_files("the certificate stays what it was", || {
            let read = match read_pair(&self.certificate, &self.key) {
                Ok((_, seen)) if seen == self.seen => return Vec::new(),
                read => read.and_then(|read| Self::of(&self.certificate, &self.key, read)),
            };
            match read {
                Err(problem) => vec![problem],
                Ok(fresh) => {
                    let _ = sender.send(Arc::clone(&fresh.config));
                    let path = fresh.certificate.display();
                    tracing::info!("the certificate was read again from `{path}`");
                    self = fresh;
                    Vec::new()
                }
            }
        })
        .await;
    }
}

/// The bytes of both files, and their digest.
type ReadPair = ([Vec<u8>; 2], [u8; 32]);

fn read_pair(certificate: &Path, key: &Path) -> Result<ReadPair, String> {
    let read_file = |path: &Path| {
        std::fs::read(path).map_err(|error| format!("`{}` cannot be read: {error}", path.display()))
    };
    let files = [read_file(certificate)?, read_file(key)?];
    let seen = Sha256::digest(files.concat()).into();
    Ok((files, seen))
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
