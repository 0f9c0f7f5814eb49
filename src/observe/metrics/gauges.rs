//! Gauges that are read for each request of the metrics, so that calls need not update them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::labels::ApiLabel;

/// The state of one upstream, read for each request of the metrics.
pub(crate) trait UpstreamGauges: Send + Sync {
    /// Calls in flight.
    fn in_flight(&self) -> usize;
    /// Calls that wait for a place.
    fn waiting(&self) -> usize;
    /// Returns true if its circuit breaker lets no call pass.
    fn is_open(&self) -> bool;
}

/// The replies that a cache keeps, counted for each request of the metrics.
pub(crate) trait CacheGauge: Send + Sync {
    /// Bytes that it holds.
    fn bytes(&self) -> usize;
}

/// Upstreams and caches that are in use, with their labels.
#[derive(Clone, Default)]
pub(super) struct WatchedParts(Arc<Mutex<PartLists>>);

#[derive(Default)]
struct PartLists {
    upstreams: Vec<(UpstreamLabels, Weak<dyn UpstreamGauges>)>,
    caches: Vec<(ApiLabel, Weak<dyn CacheGauge>)>,
}

type UpstreamLabels = (ApiLabel, Arc<str>);

impl fmt::Debug for WatchedParts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("parts")
    }
}

impl WatchedParts {
    fn lists(&self) -> MutexGuard<'_, PartLists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_upstream(
        &self,
        api: ApiLabel,
        host: Arc<str>,
        upstream: Weak<dyn UpstreamGauges>,
    ) {
        let all = &mut self.lists().upstreams;
        // Those of documents that were replaced.
        all.retain(|(_, upstream)| upstream.strong_count() > 0);
        all.push(((api, host), upstream));
    }

    pub(super) fn add_cache(&self, api: ApiLabel, cache: Weak<dyn CacheGauge>) {
        let all = &mut self.lists().caches;
        all.retain(|(_, cache)| cache.strong_count() > 0);
        all.push((api, cache));
    }

    /// Returns the calls in flight, the waiting calls and the open breakers for each API and host.
    fn upstreams(&self) -> BTreeMap<UpstreamLabels, [i64; 3]> {
        let mut sums: BTreeMap<UpstreamLabels, [i64; 3]> = BTreeMap::new();
        for (labels, upstream) in &self.lists().upstreams {
            let Some(upstream) = upstream.upgrade() else {
                continue;
            };
            let [in_flight, waiting, open] = sums.entry(labels.clone()).or_default();
            *in_flight += i64::try_from(upstream.in_flight()).unwrap_or(i64::MAX);
            *waiting += i64::try_from(upstream.waiting()).unwrap_or(i64::MAX);
            *open = (*open).max(i64::from(upstream.is_open()));
        }
        sums
    }

    /// Bytes of caches, for each API.
    fn caches(&self) -> BTreeMap<ApiLabel, i64> {
        let mut sums = BTreeMap::new();
        for (api, cache) in &self.lists().caches {
            let Some(cache) = cache.upgrade() else {
                continue;
            };
            *sums.entry(api.clone()).or_default() +=
                i64::try_from(cache.bytes()).unwrap_or(i64::MAX);
        }
        sums
    }
}

/// Writes the gauges of upstreams and caches.
#[derive(Debug)]
pub(super) struct PartsCollector(pub(super) WatchedParts);

impl Collector for PartsCollector {
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
        let upstreams = self.0.upstreams();
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
        let mut caches = self.0.caches();
        // An API without a cache keeps nothing.
        for (api, _) in upstreams.keys() {
            caches.entry(api.clone()).or_default();
        }
        if caches.is_empty() {
            return Ok(());
        }
        let mut metric = encoder.encode_descriptor(
            "openapi_mcp_cache_size_bytes",
            "Bytes that the cache holds",
            None,
            MetricType::Gauge,
        )?;
        for (api, bytes) in &caches {
            ConstGauge::new(*bytes).encode(metric.encode_family(api)?)?;
        }
        Ok(())
    }
}
