//! What is measured of requests to the API, and their spans.

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::call::with_current;
use super::metrics::Metrics;
use super::metrics::gauges::UpstreamGauges;
use super::metrics::labels::known_method;
use super::observers;
use super::outcome::CallOutcome;
use super::record::CallRecord;
use super::traces::Tracer;
use super::traces::context::TraceContext;
use super::traces::span::{AttributeValue, Attributes, OpenSpan, SpanKind};

/// The headers of W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Shows the state of an upstream for as long as it is there.
pub(crate) fn watch_upstream(host: &str, port: u16, upstream: &Arc<impl UpstreamGauges + 'static>) {
    if let Some(metrics) = observers::metrics() {
        let weak = Arc::downgrade(upstream);
        metrics.watch_upstream(host, port, weak);
    }
}

/// A request that is on its way; `None` where nobody is told of it.
pub(crate) struct RequestTimer(Option<Box<TimedRequest>>);

struct TimedRequest {
    metrics: Option<&'static Metrics>,
    started: Instant,
    span: Option<OpenRequestSpan>,
    /// What goes to the API of a trace that is not ours.
    passed_on: Option<TraceContext>,
}

/// The span of a request to the API.
struct OpenRequestSpan {
    tracer: &'static Tracer,
    span: OpenSpan,
    method: Method,
    address: (Box<str>, u16),
    url_template: Option<String>,
    /// How often the request was sent before.
    resends: u32,
}

impl RequestTimer {
    /// A request leaves for that host and port.
    pub(crate) fn start(method: &Method, host: &str, port: u16) -> Self {
        if !observers::is_on() {
            return Self(None);
        }
        let mut timed = TimedRequest {
            metrics: observers::metrics(),
            started: Instant::now(),
            span: None,
            passed_on: None,
        };
        if let Some(tracer) = observers::tracer() {
            with_current(|call, parent| match parent {
                Some(parent) => {
                    timed.span = Some(OpenRequestSpan {
                        tracer,
                        span: parent.child(SpanKind::Client),
                        method: method.clone(),
                        address: (host.into(), port),
                        url_template: path_template(call),
                        resends: call.attempts.saturating_sub(1),
                    });
                }
                None => timed.passed_on = call.arrival.contexts.first().cloned(),
            });
        }
        Self(Some(Box::new(timed)))
    }

    /// Sets the headers that carry the trace to the API, in place of any others.
    pub(crate) fn propagate(&self, headers: &mut HeaderMap) {
        let Some(timed) = &self.0 else { return };
        headers.remove(TRACEPARENT);
        headers.remove(TRACESTATE);
        let ours = timed.span.as_ref().map(|span| &span.span);
        let parent = ours.map(OpenSpan::traceparent);
        let texts = match (&parent, &timed.passed_on) {
            (Some(parent), _) => Some((parent.as_str(), ours.and_then(OpenSpan::tracestate))),
            (None, passed_on) => passed_on.as_ref().map(TraceContext::texts),
        };
        let Some((parent, state)) = texts else { return };
        for (name, value) in [(TRACEPARENT, Some(parent)), (TRACESTATE, state)] {
            if let Some(value) = value.and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
    }

    /// The request has ended, with a status or without.
    pub(crate) fn end(mut self, method: &Method, host: &str, port: u16, result: Result<u16, CallOutcome>) {
        let Some(mut timed) = self.0.take() else { return };
        if let Some(metrics) = timed.metrics {
            metrics.request(method, host, port, result, timed.started.elapsed());
        }
        timed.end_span(result);
    }
}

impl Drop for RequestTimer {
    /// Whoever drops a request has given it up.
    fn drop(&mut self) {
        if let Some(timed) = &mut self.0 {
            timed.end_span(Err(CallOutcome::Cancelled));
        }
    }
}

impl TimedRequest {
    fn end_span(&mut self, result: Result<u16, CallOutcome>) {
        let Some(open) = self.span.take().filter(|open| open.span.is_sampled()) else {
            return;
        };
        let has_failed = result.map_or(true, |status| status >= 400);
        let name = open.name();
        let span = open.span.end(name, self.started.elapsed(), open.attributes(result), has_failed);
        open.tracer.finish(span);
    }
}

impl OpenRequestSpan {
    fn name(&self) -> String {
        let method = match known_method(&self.method) {
            method if method.starts_with('_') => "HTTP",
            method => method,
        };
        match &self.url_template {
            Some(template) => format!("{method} {template}"),
            None => method.to_owned(),
        }
    }

    /// The attributes of OpenTelemetry's conventions for HTTP clients, without `url.full`, which holds values.
    fn attributes(&self, result: Result<u16, CallOutcome>) -> Attributes {
        let text = |text: &str| AttributeValue::Text(text.to_owned().into());
        let method = match known_method(&self.method) {
            method if method.starts_with('_') => "_OTHER",
            method => method,
        };
        let mut attributes = vec![
            ("http.request.method", AttributeValue::Text(method.into())),
            ("server.address", text(&self.address.0)),
            ("server.port", AttributeValue::Number(self.address.1.into())),
        ];
        if method == "_OTHER" {
            attributes.push(("http.request.method_original", text(self.method.as_str())));
        }
        if let Some(template) = &self.url_template {
            attributes.push(("url.template", text(template)));
        }
        if self.resends > 0 {
            attributes.push(("http.request.resend_count", AttributeValue::Number(self.resends.into())));
        }
        match result {
            Ok(status) => {
                attributes.push(("http.response.status_code", AttributeValue::Number(status.into())));
                if status >= 400 {
                    attributes.push(("error.type", text(&status.to_string())));
                }
            }
            Err(outcome) => attributes.push(("error.type", text(outcome.error_type()))),
        }
        attributes
    }
}

fn path_template(call: &CallRecord) -> Option<String> {
    Some(call.operation.as_ref()?.path_template.clone())
}
