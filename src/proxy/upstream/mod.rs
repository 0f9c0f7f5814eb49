//! The upstreams of an API, one for each origin: client, limits and circuit breaker.

pub(crate) mod limit;
pub(crate) mod retry;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use url::Origin;

use self::limit::{ConcurrencyLimit, RequestRate};
use self::retry::Budget;
use super::request::target::BaseUrl;
use crate::observe::metrics::OriginLabels;
use crate::observe::metrics::gauges::UpstreamGauges;
use crate::observe::metrics::labels::ApiLabel;
use crate::observe::upstream::{origin_labels, watch_upstream};
use crate::outbound::breaker::Breaker;
use crate::outbound::{Clients, HttpClient};
use crate::shared_state::rate::SharedRate;
use crate::shared_state::state::SharedApiState;

/// The operator's settings for an upstream.
#[derive(Debug, Clone)]
pub struct UpstreamOptions {
    /// Calls in flight at a time; four times as many wait for a place.
    pub concurrency: usize,
    /// Requests a second.
    pub rate: Option<f64>,
    /// Number of repetitions of a request, if they are allowed.
    pub retries: u32,
    /// Number of failures in a row after which the breaker opens; 0 is never.
    pub breaker_failures: u32,
    /// Pause without requests once the breaker is open.
    pub breaker_pause: Duration,
    /// True if requests to the API's own origin carry the trace that they belong to (W3C Trace
    /// Context).
    pub propagates_trace: bool,
    /// State in which the limits of all replicas are counted.
    pub shared: Option<SharedApiState>,
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            concurrency: 256,
            rate: None,
            retries: 2,
            breaker_failures: 20,
            breaker_pause: Duration::from_secs(30),
            propagates_trace: false,
            shared: None,
        }
    }
}

/// One origin, with its limits and its circuit breaker.
pub(crate) struct Upstream {
    pub(super) client: HttpClient,
    pub(super) concurrency: ConcurrencyLimit,
    pub(super) rate: Option<RequestRate>,
    pub(super) breaker: Breaker,
    /// API, host and port, for metrics and traces.
    pub(super) labels: OriginLabels,
    /// True if requests carry the trace that they belong to.
    pub(super) propagates_trace: bool,
    pub(super) budget: Budget,
    pub(super) retries: u32,
}

/// The upstreams of an API, one for each origin; almost all have one.
pub(crate) struct Upstreams<'o> {
    clients: Clients,
    options: &'o UpstreamOptions,
    api: ApiLabel,
    known: HashMap<Origin, Arc<Upstream>>,
}

impl<'o> Upstreams<'o> {
    /// Makes an empty set.
    pub(crate) fn new(clients: Clients, options: &'o UpstreamOptions, api: ApiLabel) -> Self {
        Self {
            clients,
            options,
            api,
            known: HashMap::new(),
        }
    }

    /// The one that a base belongs to; `elsewhere` says that it is none of those that credentials
    /// may go to.
    pub(crate) fn of(
        &mut self,
        base: &BaseUrl,
        elsewhere: bool,
        propagates_trace: bool,
    ) -> Arc<Upstream> {
        let client = if elsewhere {
            &self.clients.other
        } else {
            &self.clients.own
        };
        let fresh = || {
            let url = base.url();
            let (host, port) = (
                url.host_str().unwrap_or_default(),
                url.port_or_known_default().unwrap_or_default(),
            );
            let upstream = Arc::new(Upstream {
                propagates_trace,
                labels: origin_labels(&self.api, host, port),
                ..Upstream::new(client.clone(), &base.url().origin(), self.options)
            });
            watch_upstream(&upstream.labels, &upstream);
            upstream
        };
        Arc::clone(self.known.entry(base.url().origin()).or_insert_with(fresh))
    }
}

impl UpstreamGauges for Upstream {
    fn read(&self) -> (usize, usize, bool) {
        let calls = &self.concurrency;
        (calls.in_flight(), calls.waiting(), self.breaker.is_open())
    }
}

impl Upstream {
    /// An upstream with a closed circuit breaker.
    pub(crate) fn new(client: HttpClient, origin: &Origin, options: &UpstreamOptions) -> Self {
        Self {
            client,
            concurrency: ConcurrencyLimit::new(options.concurrency),
            rate: options.rate.map(|rate| {
                RequestRate::new(rate, |interval| {
                    Some(share_rate(options.shared.as_ref()?, origin, interval))
                })
            }),
            breaker: Breaker::new(options.breaker_failures, options.breaker_pause),
            labels: OriginLabels::default(),
            propagates_trace: false,
            budget: Budget::default(),
            retries: options.retries,
        }
    }
}

/// The limit of all replicas for one origin.
fn share_rate(shared: &SharedApiState, origin: &Origin, interval: Duration) -> SharedRate {
    let origin = origin.ascii_serialization();
    let subject = [b"upstream", shared.api.as_bytes(), origin.as_bytes()];
    SharedRate::new(&shared.state, &subject, interval, Duration::ZERO)
}
