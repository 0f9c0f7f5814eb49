//! Builds every HTTP client of this process, for calls of the API as well as for documents, tokens,
//! keys and traces. All of them are reqwest's.
//!
//! No redirect is followed, because reqwest would send custom credential headers to another host.
//! There is no cookie jar, and no proxy is taken from the environment.

pub(crate) mod breaker;
pub(crate) mod fetch;
mod gzip;
pub(crate) mod request;
mod server_certificates;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::header::{ACCEPT_ENCODING, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::Error as HttpError;
use reqwest::redirect::Policy;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use secrecy::{ExposeSecret as _, SecretString};
use thiserror::Error;
use url::Url;

use self::gzip::decode_gzip;
pub(crate) use self::server_certificates::is_of_authority;
use self::server_certificates::{
    AcceptedCertificates, CertificateVerifier, SYSTEM_ROOTS, verifier_of,
};

/// Interval of pings to the peer of an HTTP/2 connection with open streams.
const HTTP2_PING_INTERVAL: Duration = Duration::from_secs(15);
/// Time limit of the answer to a ping.
const HTTP2_PING_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest header list of a reply over HTTP/2 (RFC 9113 section 6.5.2), about as much as is
/// taken over HTTP/1.1.
const MAX_HTTP2_HEADER_LIST_BYTES: u32 = 256 << 10;
/// Time for which a connection is kept without a request, unless the server keeps it for less.
const IDLE_TIMEOUT: Duration = Duration::from_secs(90);
/// A connection is not used for the last moments that the server keeps it: the server may close it
/// while a request is on its way, and nobody knows then whether it was processed.
const IDLE_MARGIN: Duration = Duration::from_secs(1);
/// Header with the time for which an HTTP/1.1 server keeps a connection (RFC 2068 section
/// 19.7.1.1).
static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
/// Interval of TCP keep-alive probes to a silent peer, and the number of them that may fail.
const TCP_KEEPALIVE: Duration = Duration::from_secs(15);
const TCP_KEEPALIVE_RETRIES: u32 = 3;
/// Time for which sent data may stay without an acknowledgement.
#[cfg(target_os = "linux")]
const TCP_USER_TIMEOUT: Duration = Duration::from_secs(30);
/// The codings of bodies that are decoded: `gzip` here, and the others by reqwest.
const CODINGS: HeaderValue = HeaderValue::from_static("zstd,gzip,deflate,br");
/// Value of `User-Agent`.
const AGENT: &str = concat!("openapi-mcp/", env!("CARGO_PKG_VERSION"));

/// The operator's settings for outgoing connections.
#[derive(Debug, Clone)]
pub struct OutboundOptions {
    /// Time limit of making a connection.
    pub connect_timeout: Duration,
    /// True if any connection uses TLS. Reading the system's certificates takes longer than reading
    /// a small document.
    pub tls: bool,
    /// Authorities that are trusted besides those of the system.
    pub authorities: Vec<CertificateDer<'static>>,
    /// Identity for the API, if it requests a client certificate.
    pub identity: Option<Arc<Identity>>,
    /// True if certificates of the API are not checked, so that any server may pass for it.
    pub insecure: bool,
    /// Proxy through which every connection is made.
    pub proxy: Option<Proxy>,
}

/// A client certificate.
#[derive(Debug)]
pub struct Identity {
    /// The certificate and those between it and its authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
}

/// An HTTP proxy.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// Its address.
    pub url: Url,
    /// `user:password`.
    pub credential: Option<SecretString>,
}

/// A client.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: reqwest::Client,
    options: Arc<OutboundOptions>,
    /// Time for which it keeps a connection without a request. reqwest takes one for all
    /// connections of a client.
    idle_timeout: Duration,
    /// The client that is used instead, after a server said that it keeps connections for less
    /// time.
    successor: Arc<OnceLock<HttpClient>>,
}

impl HttpClient {
    /// A GET request of its own, as for a document.
    pub(crate) fn get(&self, url: Url) -> reqwest::RequestBuilder {
        self.client.get(url)
    }

    /// A POST request of its own, as for traces.
    #[cfg(feature = "otel")]
    pub(crate) fn post(&self, url: Url) -> reqwest::RequestBuilder {
        self.client.post(url)
    }

    /// Returns true if its connections are made through a proxy.
    pub(crate) fn has_proxy(&self) -> bool {
        self.options.proxy.is_some()
    }

    /// Sends the request of a call, or one like it. Dropping the future ends it. An error has no URL.
    pub(crate) async fn send(
        &self,
        request: reqwest::Request,
    ) -> Result<reqwest::Response, HttpError> {
        let mut newest = self;
        while let Some(successor) = newest.successor.get() {
            newest = successor;
        }
        let reply = newest.client.execute(request).await;
        let reply = reply.map_err(HttpError::without_url)?;
        if let Some(kept) = reply
            .headers()
            .get(&KEEP_ALIVE)
            .and_then(keep_alive_timeout)
        {
            newest.keep_connections_for(kept.saturating_sub(IDLE_MARGIN));
        }
        Ok(decode_gzip(reply))
    }

    /// Keeps connections without a request for that time at most, from the next request on. The
    /// time is halved at least, so that a server that gives less with each reply makes few clients.
    fn keep_connections_for(&self, idle_timeout: Duration) {
        if idle_timeout < self.idle_timeout
            && let Ok(successor) =
                client_with_idle_timeout(&self.options, idle_timeout.min(self.idle_timeout / 2))
        {
            // Another reply may have said so at the same time.
            let _ = self.successor.set(successor);
        }
    }
}

/// The time for which a server keeps a connection without a request.
fn keep_alive_timeout(header: &HeaderValue) -> Option<Duration> {
    let parameters = header.to_str().ok()?.split(',');
    let mut parameters = parameters.filter_map(|parameter| parameter.split_once('='));
    let (_, timeout) = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))?;
    timeout.trim().parse().ok().map(Duration::from_secs)
}

/// Sends a request that [`HttpClient::get`] or [`HttpClient::post`] began.
///
/// # Errors
/// No head of a reply came.
pub(crate) async fn send(request: reqwest::RequestBuilder) -> Result<reqwest::Response, HttpError> {
    request.send().await.map(decode_gzip)
}

/// The clients for one API.
#[derive(Debug, Clone)]
pub struct Clients {
    /// Client for the API's own origin: it presents the client certificate, and may be insecure.
    pub own: HttpClient,
    /// Client for all other servers.
    pub other: HttpClient,
}

impl From<HttpClient> for Clients {
    fn from(client: HttpClient) -> Self {
        Self {
            own: client.clone(),
            other: client,
        }
    }
}

impl Default for OutboundOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(5),
            tls: true,
            authorities: Vec::new(),
            identity: None,
            insecure: false,
            proxy: None,
        }
    }
}

/// Reason for which no client can be made.
#[derive(Debug, Error)]
pub enum OutboundError {
    /// The TLS configuration was refused.
    #[error("TLS cannot be set up")]
    Tls(#[source] rustls::Error),
    /// The client certificate was refused.
    #[error("the client certificate cannot be used with its key")]
    Identity(#[source] rustls::Error),
    /// reqwest refused the settings.
    #[error("the HTTP client cannot be set up")]
    Client(#[source] HttpError),
}

impl OutboundOptions {
    /// Returns the options for all servers but the API itself: without the client certificate, and
    /// with all certificates checked.
    #[must_use]
    pub fn for_others(&self) -> Self {
        Self {
            identity: None,
            insecure: false,
            ..self.clone()
        }
    }

    /// Returns true if the API needs a client of its own.
    #[must_use]
    pub fn sets_the_api_apart(&self) -> bool {
        self.identity.is_some() || self.insecure
    }
}

/// Makes a client for the given settings. In addition, reqwest repeats requests that an HTTP/2
/// server declares unprocessed: streams above the last one of a GOAWAY, and refused ones (RFC 9113
/// section 8.7), twice at most. Roots come from the system; if it has none (an empty container
/// image), those that are compiled in serve.
///
/// # Errors
/// An error if TLS or the client cannot be set up.
pub fn http_client(options: &OutboundOptions) -> Result<HttpClient, OutboundError> {
    client_with_idle_timeout(&Arc::new(options.clone()), IDLE_TIMEOUT)
}

fn client_with_idle_timeout(
    options: &Arc<OutboundOptions>,
    idle_timeout: Duration,
) -> Result<HttpClient, OutboundError> {
    let tls = tls_config(options)?;
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .no_proxy()
        .connect_timeout(options.connect_timeout)
        .tcp_nodelay(true)
        .tcp_keepalive(TCP_KEEPALIVE)
        .tcp_keepalive_interval(TCP_KEEPALIVE)
        .tcp_keepalive_retries(TCP_KEEPALIVE_RETRIES)
        .pool_idle_timeout(idle_timeout)
        // One connection carries the calls of many: a dead one must be noticed, or all of them wait
        // for their deadlines.
        .http2_keep_alive_interval(HTTP2_PING_INTERVAL)
        .http2_keep_alive_timeout(HTTP2_PING_TIMEOUT)
        .http2_max_header_list_size(MAX_HTTP2_HEADER_LIST_BYTES)
        .default_headers(HeaderMap::from_iter([(ACCEPT_ENCODING, CODINGS)]))
        .user_agent(AGENT);
    #[cfg(target_os = "linux")]
    {
        builder = builder.tcp_user_timeout(TCP_USER_TIMEOUT);
    }
    if let Some(proxy) = &options.proxy {
        let mut through = reqwest::Proxy::all(proxy.url.clone()).map_err(OutboundError::Client)?;
        let credential = proxy.credential.as_ref();
        let pair = credential.and_then(|pair| pair.expose_secret().split_once(':'));
        if let Some((user, password)) = pair {
            through = through.basic_auth(user, password);
        }
        builder = builder.proxy(through);
    }
    let client = builder.build().map_err(OutboundError::Client)?;
    Ok(HttpClient {
        client,
        options: Arc::clone(options),
        idle_timeout,
        successor: Arc::default(),
    })
}

fn tls_config(options: &OutboundOptions) -> Result<ClientConfig, OutboundError> {
    let provider: Arc<rustls::crypto::CryptoProvider> =
        rustls::crypto::aws_lc_rs::default_provider().into();
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(OutboundError::Tls)?;
    let builder = if options.insecure || options.tls {
        let accepted = if options.insecure {
            AcceptedCertificates::All
        } else if options.authorities.is_empty() {
            AcceptedCertificates::OfSystem(OnceLock::new())
        } else {
            let mut roots = RootCertStore::clone(&SYSTEM_ROOTS);
            roots.add_parsable_certificates(options.authorities.iter().cloned());
            let verifier = verifier_of(&roots.into(), &provider)
                .map_err(|error| OutboundError::Tls(rustls::Error::General(error.to_string())))?;
            AcceptedCertificates::Named(verifier, options.authorities.clone())
        };
        let verifier = Arc::new(CertificateVerifier { provider, accepted });
        builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .map_err(OutboundError::Identity)?,
    };
    // RFC 9113 section 3.2: HTTP/2 only if the handshake agrees on it.
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// TLS for connections that do not carry HTTP, to a server whose certificate is always checked.
///
/// # Errors
/// The TLS configuration is refused.
pub(crate) fn tls_of_other_protocols(
    authorities: Vec<CertificateDer<'static>>,
) -> Result<ClientConfig, OutboundError> {
    let mut config = tls_config(&OutboundOptions {
        authorities,
        ..OutboundOptions::default()
    })?;
    config.alpn_protocols = Vec::new();
    Ok(config)
}

/// Returns true if a URL names this machine by a loopback address (RFC 6890) or by `localhost` (RFC
/// 6761).
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    }
}

/// Returns true if requests to the URL are encrypted or stay on this machine.
pub(crate) fn is_encrypted_or_local(url: &Url) -> bool {
    url.scheme() == "https" || (url.scheme() == "http" && is_loopback(url))
}
