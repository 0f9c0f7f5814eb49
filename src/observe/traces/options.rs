//! The operator's settings for traces, by the variables of OpenTelemetry.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rustls::pki_types::CertificateDer;
use url::Url;

use super::sampler::Sampler;
use crate::outbound::Identity;

/// Destination of spans, and their sampling.
#[derive(Debug, Clone)]
pub(crate) struct TraceOptions {
    pub(crate) endpoint: Url,
    /// Headers of each request to the collector; their values are secrets.
    pub(crate) headers: HeaderMap,
    /// Time limit of one request.
    pub(crate) timeout: Duration,
    /// True if requests are compressed.
    pub(crate) gzip: bool,
    /// Time for which a span waits for others.
    pub(crate) schedule_delay: Duration,
    pub(crate) sampler: Sampler,
    /// Attributes of the process.
    pub(crate) resource: Vec<(String, String)>,
    /// Authorities that the collector's certificate may come from besides those of the system.
    pub(crate) authorities: Vec<CertificateDer<'static>>,
    /// Identity for the collector, if it requests a client certificate.
    pub(crate) identity: Option<Arc<Identity>>,
}
