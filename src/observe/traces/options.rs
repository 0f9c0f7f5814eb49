//! What an operator sets about traces, by the variables of OpenTelemetry.

use std::time::Duration;

use http::HeaderMap;
use rustls::pki_types::CertificateDer;
use std::sync::Arc;
use url::Url;

use super::sampler::Sampler;
use crate::outbound::Identity;

/// Where spans go, and which.
#[derive(Debug, Clone)]
pub(crate) struct TraceOptions {
    pub(crate) endpoint: Url,
    /// Headers of each request to the collector; their values are secrets.
    pub(crate) headers: HeaderMap,
    /// How long one request may take.
    pub(crate) timeout: Duration,
    /// Whether requests are compressed.
    pub(crate) gzip: bool,
    /// How long a span waits for others.
    pub(crate) schedule_delay: Duration,
    pub(crate) sampler: Sampler,
    /// What the process says of itself.
    pub(crate) resource: Vec<(String, String)>,
    /// Authorities that the collector's certificate may come from besides those of the system.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
    /// Whom the collector sees, where it asks for a client certificate.
    pub(crate) identity: Option<Arc<Identity>>,
}
