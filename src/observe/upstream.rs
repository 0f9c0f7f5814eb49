//! What is measured of requests to the API.

use std::sync::Arc;
use std::time::Instant;

use http::Method;

use super::metrics::Metrics;
use super::metrics::gauges::UpstreamGauges;
use super::observers;
use super::outcome::CallOutcome;

/// Shows the state of an upstream for as long as it is there.
pub(crate) fn watch_upstream(host: &str, port: u16, upstream: &Arc<impl UpstreamGauges + 'static>) {
    if let Some(metrics) = observers::metrics() {
        let weak = Arc::downgrade(upstream);
        metrics.watch_upstream(host, port, weak);
    }
}

/// A request that is on its way; `None` where nothing is measured.
pub(crate) struct RequestTimer(Option<(&'static Metrics, Instant)>);

impl RequestTimer {
    pub(crate) fn start() -> Self {
        Self(observers::metrics().map(|metrics| (metrics, Instant::now())))
    }

    /// The request has ended, with a status or without.
    pub(crate) fn end(self, method: &Method, host: &str, port: u16, result: Result<u16, CallOutcome>) {
        if let Some((metrics, started)) = self.0 {
            metrics.request(method, host, port, result, started.elapsed());
        }
    }
}
