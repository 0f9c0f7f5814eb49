//! Gauges that are read for each request of the metrics, so that calls need not update them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::labels::ApiLabel;

/// Reads the number of calls in flight at an upstream, that of calls that wait for a place, and 1 if
/// its circuit breaker lets no call pass; `None` if the upstream is no longer there.
pub(crate) type ReadGauges = dyn Fn() -> Option<[usize; 3]> + Send + Sync;

/// Upstreams that are in use, with their labels.
#[derive(Clone, Default)]
pub(super) struct WatchedUpstreams(Arc<Mutex<Vec<LabelledUpstream>>>);

type UpstreamLabels = (ApiLabel, Arc<str>);

type LabelledUpstream = (UpstreamLabels, Box<ReadGauges>);

impl fmt::Debug for WatchedUpstreams {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("upstreams")
    }
}

impl WatchedUpstreams {
    pub(super) fn add(&self, api: ApiLabel, host: Arc<str>, read: Box<ReadGauges>) {
        let mut all = self.0.lock();
        // Those of documents that were replaced.
        all.retain(|(_, read)| read().is_some());
        all.push(((api, host), read));
    }

    /// Returns the calls in flight, the waiting calls and the open breakers for each API and host.
    fn sums(&self) -> BTreeMap<UpstreamLabels, [usize; 3]> {
        let mut sums: BTreeMap<UpstreamLabels, [usize; 3]> = BTreeMap::new();
        for (labels, read) in self.0.lock().iter() {
            if let Some([in_flight, waiting, is_open]) = read() {
                let sum = sums.entry(labels.clone()).or_default();
                *sum = [sum[0] + in_flight, sum[1] + waiting, sum[2].max(is_open)];
            }
        }
        sums
    }
}

impl Collector for WatchedUpstreams {
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
        let upstreams = self.sums();
        if upstreams.is_empty() {
            return Ok(());
        }
        for (index, (name, help)) in gauges.into_iter().enumerate() {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for ((api, host), values) in &upstreams {
                let value = values.get(index).copied().unwrap_or_default();
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                let labels = (api.clone(), [("server_address", host.as_ref())]);
                ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
            }
        }
        Ok(())
    }
}
