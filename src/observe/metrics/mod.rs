//! Metrics for Prometheus. The names are those of OpenTelemetry's semantic conventions for MCP and
//! HTTP in Prometheus' form, and ours begin with `openapi_mcp_`. The values of every label are
//! limited. Prometheus reads them as `OpenMetrics` 1.0.0, which the library writes, or in the classic
//! text format 0.0.4.
//!
//! # Adding a metric
//!
//! - An event with one label is a `CountedEvent` and a row of `COUNTED` in
//!   `observe/metrics/mod.rs`; `count` is called where it happens.
//! - Anything else is a field of `Metrics` there, its name in `new` and a method. A gauge of an
//!   upstream is in `observe/metrics/gauges.rs`.
//! - The last member of its row of `COUNTED` lists the label values that exist from the start.
//! - A row in `docs/reference/metrics.md`, and in `METRICS` in `tests/it/http/metrics.rs`.

pub(crate) mod gauges;
pub(crate) mod labels;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Method;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

use self::gauges::{ReadGauges, WatchedUpstreams};
use self::labels::{
    APPROVAL_OUTCOMES, ApiLabel, CallOutcome, EXCHANGE_OUTCOMES, Label, OTHER, OUTCOMES,
    OperationLabels, REFUSAL_REASONS, RequestLabels, SHARED_STATE_USES, known_method, known_status,
};

/// `mcp.server.operation.duration`, in seconds.
const OPERATION_BUCKETS: [f64; 14] = [
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];
/// `http.client.request.duration`, in seconds.
const REQUEST_BUCKETS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
];
/// A histogram is a series for each bucket, one for `+Inf`, the sum and the count.
const SERIES_OF_HISTOGRAM: usize = 17;
/// Series of histograms in all; beyond, tools and origins are `_other`.
const MAX_SERIES: usize = 10_000;
/// Number of origins that are distinguished.
const MAX_ORIGINS: usize = 100;
/// Number of tools above which metrics of calls do not name the tool.
const MAX_LABELLED_TOOLS: usize = 500;

/// The method whose requests have a tool.
pub(crate) const TOOLS_CALL: &str = "tools/call";

/// The labels of one origin of an API.
#[derive(Clone, Default)]
pub(crate) struct OriginLabels {
    pub(crate) api: ApiLabel,
    pub(crate) host: Arc<str>,
    pub(crate) port: u16,
}

/// An event that is counted by one label.
#[derive(Clone, Copy)]
pub(crate) enum CountedEvent {
    /// A request was refused before its message was read.
    Refusal,
    /// An access token was asked for.
    TokenRequest,
    /// A person was asked by a link, or has answered.
    Approval,
    /// A call needed a token of its user.
    Exchange,
    /// The shared state could not be used.
    SharedStateFailure,
}

/// Of each [`CountedEvent`], the name and help of its counter, its label and all values of that.
const COUNTED: [(&str, &str, &str, &[&str]); 5] = [
    (
        "openapi_mcp_rejected",
        "Requests that were refused before their message was read",
        "reason",
        &REFUSAL_REASONS,
    ),
    (
        "openapi_mcp_oauth_refresh",
        "Requests for access tokens for the API",
        "outcome",
        &OUTCOMES,
    ),
    (
        "openapi_mcp_approvals",
        "Questions of --confirm-by link, and answers to them",
        "outcome",
        &APPROVAL_OUTCOMES,
    ),
    (
        "openapi_mcp_exchanges",
        "Tokens of users that were exchanged for the API",
        "outcome",
        &EXCHANGE_OUTCOMES,
    ),
    (
        "openapi_mcp_shared_state_errors",
        "Uses of the shared state that failed",
        "what",
        &SHARED_STATE_USES,
    ),
];

/// All metrics of the process.
pub(crate) struct Metrics {
    registry: Registry,
    operations: Family<OperationLabels, Histogram>,
    requests: Family<RequestLabels, Histogram>,
    retries: Family<ApiLabel, Counter>,
    /// Results that were shortened.
    pub(crate) results_cut: Counter,
    masked: Family<[(&'static str, Arc<str>); 1], Counter>,
    counted: [Family<Label, Counter>; COUNTED.len()],
    reloads: Family<(ApiLabel, Label), Counter>,
    exchange_seconds: Histogram,
    /// Lines of the audit log that are lost.
    pub(super) audit_lost: Counter,
    spans_dropped: Counter,
    tools: Family<(ApiLabel, Label), Gauge>,
    upstreams: WatchedUpstreams,
    tool_count: AtomicUsize,
    series: AtomicUsize,
    origins: Mutex<HashSet<(String, u16)>>,
}

impl Metrics {
    /// All metrics, with their names; the library appends `_total` to counters and `_info` to what
    /// only informs.
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let names = &mut registry;
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        names.register("openapi_mcp_build", "The version of this server", build);
        let upstreams = WatchedUpstreams::default();
        names.register_collector(Box::new(upstreams.clone()));
        let metrics = Self {
            operations: register(
                names,
                "mcp_server_operation_duration_seconds",
                "How long requests of clients took",
                Family::new_with_constructor(|| Histogram::new(OPERATION_BUCKETS)),
            ),
            requests: register(
                names,
                "http_client_request_duration_seconds",
                "How long requests to the API took",
                Family::new_with_constructor(|| Histogram::new(REQUEST_BUCKETS)),
            ),
            retries: register(
                names,
                "openapi_mcp_retries",
                "Requests that were sent again",
                Family::default(),
            ),
            results_cut: register(
                names,
                "openapi_mcp_results_cut",
                "Results that were shortened",
                Counter::default(),
            ),
            masked: register(
                names,
                "openapi_mcp_masked",
                "Values of replies that were masked",
                Family::default(),
            ),
            counted: COUNTED.map(|(name, help, ..)| register(names, name, help, Family::default())),
            reloads: register(
                names,
                "openapi_mcp_spec_reload",
                "Changed documents that were read",
                Family::default(),
            ),
            exchange_seconds: register(
                names,
                "openapi_mcp_exchange_duration_seconds",
                "How long calls waited for the exchange of a user's token",
                Histogram::new(REQUEST_BUCKETS),
            ),
            audit_lost: register(
                names,
                "openapi_mcp_audit_lost",
                "Lines of the audit log that could not be written",
                Counter::default(),
            ),
            spans_dropped: register(
                names,
                "openapi_mcp_spans_dropped",
                "Spans that could not be sent",
                Counter::default(),
            ),
            tools: register(
                names,
                "openapi_mcp_tools",
                "Tools that are served",
                Family::default(),
            ),
            upstreams,
            tool_count: AtomicUsize::new(0),
            series: AtomicUsize::new(0),
            origins: Mutex::default(),
            registry,
        };
        // A counter that came with its first count would hide that count: Prometheus sees an
        // increase between two values alone.
        for (counters, (_, _, label, values)) in metrics.counted.iter().zip(COUNTED) {
            for value in values {
                drop(counters.get_or_create(&[(label, value)]));
            }
        }
        metrics
    }

    /// Counts an event.
    pub(crate) fn count(&self, event: CountedEvent, value: &'static str) {
        let place = event as usize;
        if let (Some(counters), Some((_, _, label, _))) =
            (self.counted.get(place), COUNTED.get(place))
        {
            counters.get_or_create(&[(label, value)]).inc();
        }
    }

    /// A call has ended.
    pub(super) fn operation(&self, mut labels: OperationLabels, duration: Duration) {
        let seconds = duration.as_secs_f64();
        if let Some(known) = self.operations.get(&labels) {
            return known.observe(seconds);
        }
        if !self.take_series() {
            labels.gen_ai_tool_name = OTHER.into();
        }
        self.operations.get_or_create(&labels).observe(seconds);
    }

    /// The label of a tool that exists; `None` for any other name.
    pub(super) fn tool_label(&self, tool: Option<&str>) -> Box<str> {
        match tool {
            _ if self.tool_count.load(Ordering::Relaxed) > MAX_LABELLED_TOOLS => "".into(),
            Some(tool) => tool.into(),
            None => OTHER.into(),
        }
    }

    /// Returns true if there is room for one more histogram; and takes it.
    fn take_series(&self) -> bool {
        let take = |taken| Some(taken + SERIES_OF_HISTOGRAM).filter(|taken| *taken <= MAX_SERIES);
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        self.series.fetch_update(set, fetch, take).is_ok()
    }

    /// A request to the API has ended.
    pub(crate) fn request(
        &self,
        method: &Method,
        origin: &OriginLabels,
        result: Result<u16, CallOutcome>,
        duration: Duration,
    ) {
        let mut labels = RequestLabels {
            api: origin.api.clone(),
            http_request_method: known_method(method),
            http_response_status_code: result.map_or("", known_status),
            error_type: match result {
                Ok(status) if status >= 400 => known_status(status),
                Ok(_) => "",
                Err(outcome) => outcome.error_type(),
            },
            server_address: Arc::clone(&origin.host),
            server_port: origin.port,
        };
        let seconds = duration.as_secs_f64();
        if let Some(known) = self.requests.get(&labels) {
            return known.observe(seconds);
        }
        if !self.take_series() {
            (labels.server_address, labels.server_port) = (OTHER.into(), 0);
        }
        self.requests.get_or_create(&labels).observe(seconds);
    }

    /// The labels of an origin: its own, unless too many have some.
    pub(super) fn origin_labels(&self, api: ApiLabel, host: &str, port: u16) -> OriginLabels {
        let mut origins = self.origins.lock();
        let origin = (host.to_owned(), port);
        let has_label =
            origins.contains(&origin) || (origins.len() < MAX_ORIGINS && origins.insert(origin));
        let (host, port) = if has_label {
            (host.into(), port)
        } else {
            (OTHER.into(), 0)
        };
        OriginLabels { api, host, port }
    }

    /// The state of this upstream is shown from now on.
    pub(super) fn watch_upstream(&self, origin: &OriginLabels, read: Box<ReadGauges>) {
        drop(self.retries.get_or_create(&origin.api));
        for outcome in OUTCOMES {
            let labels = (origin.api.clone(), [("outcome", outcome)]);
            drop(self.reloads.get_or_create(&labels));
        }
        self.upstreams
            .add(origin.api.clone(), Arc::clone(&origin.host), read);
    }

    /// A request is sent again.
    pub(crate) fn retried(&self, api: &ApiLabel) {
        self.retries.get_or_create(api).inc();
    }

    /// Values of replies were masked.
    pub(crate) fn masked(&self, kind: &Arc<str>, count: u64) {
        let label = [("kind", Arc::clone(kind))];
        self.masked.get_or_create(&label).inc_by(count);
    }

    /// A changed document was read.
    pub(crate) fn reloaded(&self, api: ApiLabel, is_served: bool) {
        let labels = (api, [("outcome", outcome_of(is_served))]);
        self.reloads.get_or_create(&labels).inc();
    }

    /// A call needed a token of its user.
    pub(crate) fn exchanged(&self, outcome: &'static str, waited: Duration) {
        self.count(CountedEvent::Exchange, outcome);
        self.exchange_seconds.observe(waited.as_secs_f64());
    }

    /// Spans are lost.
    pub(super) fn spans_dropped(&self, count: usize) {
        self.spans_dropped
            .inc_by(u64::try_from(count).unwrap_or(u64::MAX));
    }

    /// These tools are served from now on: of each, its API and its effect.
    pub(crate) fn tools_served(&self, tools: impl Iterator<Item = (ApiLabel, &'static str)>) {
        let mut counts: BTreeMap<(ApiLabel, Label), i64> = BTreeMap::new();
        let mut all = 0;
        for (api, effect) in tools {
            for known in ["read", "write", "destructive"] {
                let labels = (api.clone(), [("effect", known)]);
                *counts.entry(labels).or_default() += i64::from(known == effect);
            }
            all += 1;
        }
        self.tool_count.store(all, Ordering::Relaxed);
        // A changed document may have lost its tools.
        self.tools.clear();
        for (labels, count) in counts {
            self.tools.get_or_create(&labels).set(count);
        }
    }
}

/// Registers a metric under a name.
fn register<M: Metric + Clone>(names: &mut Registry, name: &str, help: &str, metric: M) -> M {
    names.register(name, help, metric.clone());
    metric
}

/// Outcome of a try.
pub(crate) fn outcome_of(is_ok: bool) -> &'static str {
    if is_ok { "ok" } else { "failed" }
}

impl Metrics {
    /// The whole page as `OpenMetrics`.
    pub(crate) fn exposition(&self) -> String {
        let mut text = String::new();
        // A `String` takes everything.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        // A metric that has labels only if there are several APIs.
        text.replace("{} ", " ")
    }
}

/// The same in the classic format, whose `HELP` and `TYPE` name the samples: with `_total` and
/// `_info`. It knows neither the type `info` nor `# UNIT` and `# EOF`.
pub(crate) fn to_classic(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line
            .strip_prefix("# TYPE ")
            .and_then(|rest| rest.split_once(' '))
        {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            if let Some((_, help)) = help.take().filter(|(helped, _)| *helped == name) {
                out.push_str(&format!("# HELP {name}{suffix} {help}\n"));
            }
            out.push_str(&format!("# TYPE {name}{suffix} {kind}\n"));
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(metrics: &Metrics) -> usize {
        to_classic(&metrics.exposition()).lines().count()
    }

    #[test]
    fn many_tools_and_origins_do_not_grow_the_set() {
        let metrics = Metrics::new();
        for number in 0..10_000_u16 {
            let tool = format!("tool_{number}");
            let labels = OperationLabels {
                api: ApiLabel::default(),
                mcp_method_name: TOOLS_CALL,
                gen_ai_tool_name: metrics.tool_label(Some(&tool)),
                error_type: "",
                network_transport: "tcp",
                mcp_protocol_version: "2025-11-25",
            };
            metrics.operation(labels, Duration::from_millis(1));
            let method = Method::from_bytes(tool.as_bytes()).unwrap();
            let origin = metrics.origin_labels(ApiLabel::default(), &format!("host-{number}"), 443);
            metrics.request(&method, &origin, Ok(100 + number % 900), Duration::ZERO);
        }
        // The series of `_other`, and lines that say what a metric is.
        assert!(lines(&metrics) < MAX_SERIES + 3000, "{}", lines(&metrics));
        let text = to_classic(&metrics.exposition());
        assert!(
            text.contains("gen_ai_tool_name=\"_other\"")
                && text.contains("server_address=\"_other\"")
        );
        assert!(text.contains("http_request_method=\"_other\""));
    }

    #[test]
    fn a_large_api_leaves_its_tools_out_of_labels() {
        for (count, expected) in [(500, "a"), (501, "")] {
            let metrics = Metrics::new();
            metrics.tools_served(std::iter::repeat_n((ApiLabel::default(), "read"), count));
            assert_eq!(&*metrics.tool_label(Some("a")), expected, "{count}");
        }
    }

    #[test]
    fn the_classic_text_names_samples_in_its_help() {
        let text = "# HELP a Things.\n# TYPE a counter\na_total 1\n# HELP b B.\n# TYPE b info\nb_info{v=\"1\"} 1\n# UNIT c seconds\n# EOF\n";
        let expected = "# HELP a_total Things.\n# TYPE a_total counter\na_total 1\n# HELP b_info B.\n# TYPE b_info gauge\nb_info{v=\"1\"} 1\n";
        assert_eq!(to_classic(text), expected);
    }
}
