//! Gauges that are read for each request of the metrics, so that calls need not update them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::labels::ApiLabel;

/// The state of one upstream, read for each request of the metrics.
pub(crate) trait UpstreamGauges: Send + Sync {
    /// Returns the number of calls in flight, that of calls that wait for a place, and whether its
    /// circuit breaker lets no call pass.
    fn read(&self) -> (usize, usize, bool);
}

/// Upstreams that are in use, with their labels.
#[derive(Clone, Default)]
pub(super) struct WatchedUpstreams(Arc<Mutex<Vec<LabelledUpstream>>>);

type UpstreamLabels = (ApiLabel, Arc<str>);

type LabelledUpstream = (UpstreamLabels, Weak<dyn UpstreamGauges>);

impl fmt::Debug for WatchedUpstreams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("upstreams")
    }
}

impl WatchedUpstreams {
    pub(super) fn add(&self, api: ApiLabel, host: Arc<str>, upstream: Weak<dyn UpstreamGauges>) {
        let mut all = self.0.lock();
        // Those of documents that were replaced.
        all.retain(|(_, upstream)| upstream.strong_count() > 0);
        all.push(((api, host), upstream));
    }

    /// Returns the calls in flight, the waiting calls and the open breakers for each API and host.
    fn sums(&self) -> BTreeMap<UpstreamLabels, [i64; 3]> {
        let mut sums: BTreeMap<UpstreamLabels, [i64; 3]> = BTreeMap::new();
        for (labels, upstream) in self.0.lock().iter() {
            let Some(upstream) = upstream.upgrade() else {
                continue;
            };
            let (in_flight, waiting, is_open) = upstream.read();
            let [all_in_flight, all_waiting, open] = sums.entry(labels.clone()).or_default();
            *all_in_flight += i64::try_from(in_flight).unwrap_or(i64::MAX);
            *all_waiting += i64::try_from(waiting).unwrap_or(i64::MAX);
            *open = (*open).max(i64::from(is_open));
        }
        sums
    }
}

/// Writes the gauges of upstreams.
#[derive(Debug)]
pub(super) struct UpstreamsCollector(pub(super) WatchedUpstreams);

impl Collector for UpstreamsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let gauges = [
            (
                "openapi_mcp_inflight",
                "Calls that an upstream is working on",
            ),
            (
                "openapi_mcp_queue_depth",
                "Calls that wait for a place at an upstream",
            ),
            (
                "openapi_mcp_breaker_open",
                "Whether an upstream is left alone because it failed (1) or not (0)",
            ),
        ];
        let upstreams = self.0.sums();
        for (index, (name, help)) in gauges
            .into_iter()
            .enumerate()
            .filter(|_| !upstreams.is_empty())
        {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for ((api, host), values) in &upstreams {
                let value = values.get(index).copied().unwrap_or_default();
                let labels = (api.clone(), [("server_address", host.as_ref())]);
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
