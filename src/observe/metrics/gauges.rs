//! Gauges that are read when somebody asks, so that no call has to keep them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

/// The state of one upstream, read when somebody asks for the metrics.
pub(crate) trait UpstreamGauges: Send + Sync {
    /// Calls in flight.
    fn in_flight(&self) -> usize;
    /// Calls that wait for a place.
    fn waiting(&self) -> usize;
    /// Whether its circuit breaker lets no call pass.
    fn is_open(&self) -> bool;
}

/// Upstreams that are in use, with the name of their host.
#[derive(Clone, Default)]
pub(super) struct WatchedUpstreams(Arc<Mutex<Vec<WatchedUpstream>>>);

type WatchedUpstream = (Box<str>, Weak<dyn UpstreamGauges>);

impl fmt::Debug for WatchedUpstreams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("upstreams")
    }
}

impl WatchedUpstreams {
    pub(super) fn add(&self, host: Box<str>, upstream: Weak<dyn UpstreamGauges>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of documents that were replaced.
        all.retain(|(_, upstream)| upstream.strong_count() > 0);
        all.push((host, upstream));
    }

    /// In flight, waiting and open, for each host.
    fn sums(&self) -> BTreeMap<Box<str>, [i64; 3]> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums: BTreeMap<Box<str>, [i64; 3]> = BTreeMap::new();
        for (host, upstream) in all.iter() {
            let Some(upstream) = upstream.upgrade() else { continue };
            let [in_flight, waiting, open] = sums.entry(host.clone()).or_default();
            *in_flight += i64::try_from(upstream.in_flight()).unwrap_or(i64::MAX);
            *waiting += i64::try_from(upstream.waiting()).unwrap_or(i64::MAX);
            *open = (*open).max(i64::from(upstream.is_open()));
        }
        sums
    }
}

/// Writes the gauges of upstreams.
#[derive(Debug)]
pub(super) struct UpstreamCollector(pub(super) WatchedUpstreams);

impl Collector for UpstreamCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let sums = self.0.sums();
        if sums.is_empty() {
            return Ok(());
        }
        let gauges = [
            ("openapi_mcp_inflight", "Calls that an upstream is working on"),
            ("openapi_mcp_queue_depth", "Calls that wait for a place at an upstream"),
            (
                "openapi_mcp_breaker_open",
                "Whether an upstream is left alone because it failed (1) or not (0)",
            ),
        ];
        for (index, (name, help)) in gauges.into_iter().enumerate() {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (host, values) in &sums {
                let value = values.get(index).copied().unwrap_or_default();
                let label = [("server_address", host.as_ref())];
                ConstGauge::new(value).encode(metric.encode_family(&label)?)?;
            }
        }
        Ok(())
    }
}
