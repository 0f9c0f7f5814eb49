//! The one way out: how this process makes HTTP requests, to the API and to fetch a document.
//!
//! No redirect is followed, because reqwest would carry custom credential headers to another host; there is no cookie jar
//! and no proxy from the environment, because neither was asked for.

use std::time::Duration;

use reqwest::redirect::Policy;
use rustls::RootCertStore;
use thiserror::Error;

/// What an operator sets about outgoing connections.
#[derive(Debug, Clone)]
pub struct OutboundOptions {
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// Whether any connection uses TLS. Reading the system's certificates takes longer than reading a small document.
    pub tls: bool,
}

impl Default for OutboundOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            tls: true,
        }
    }
}

/// Why no client can be made.
#[derive(Debug, Error)]
pub enum OutboundError {
    /// The TLS configuration was refused.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// reqwest refused the settings.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] reqwest::Error),
}

/// A client for the given settings. Roots come from the system; where it has none (an empty container image), those that
/// are compiled in serve.
///
/// # Errors
/// Where TLS or the client cannot be set up.
pub fn client(options: &OutboundOptions) -> Result<reqwest::Client, OutboundError> {
    let mut roots = RootCertStore::empty();
    if options.tls {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            roots.add_parsable_certificates(webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter().cloned());
        }
    }
    let tls = rustls::ClientConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(OutboundError::Tls)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .no_proxy()
        .connect_timeout(options.connect_timeout)
        .tcp_nodelay(true)
        .user_agent(concat!("openapi-mcp/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(OutboundError::Client)
}
