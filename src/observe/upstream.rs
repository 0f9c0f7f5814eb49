//! Measurements of requests to the API, and their spans.

use std::time::Instant;

use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::call::with_current;
use super::metrics::OriginLabels;
use super::metrics::gauges::ReadGauges;
use super::metrics::labels::{ApiLabel, CallOutcome, OTHER, known_method};
use super::traces::span::{AttributeValue, Attributes, OpenSpan, TraceContext};
use crate::{observe, text};

/// A document could have longer paths.
const MAX_TEMPLATE_BYTES: usize = 512;
/// The headers of W3C Trace Context.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The labels of an origin of an API.
pub(crate) fn origin_labels(api: &ApiLabel, host: &str, port: u16) -> OriginLabels {
    match observe::metrics() {
        Some(metrics) => metrics.origin_labels(api.clone(), host, port),
        None => OriginLabels {
            api: api.clone(),
            host: host.into(),
            port,
        },
    }
}

/// Shows the state of an upstream for as long as it is there.
pub(crate) fn watch_upstream(origin: &OriginLabels, read: Box<ReadGauges>) {
    if let Some(metrics) = observe::metrics() {
        metrics.watch_upstream(origin, read);
    }
}

/// A request that is on its way; `None` if it is not observed.
pub(crate) struct RequestTimer<'u>(Option<Box<TimedRequest<'u>>>);

struct TimedRequest<'u> {
    method: Method,
    origin: &'u OriginLabels,
    started: Instant,
    span: Option<OpenRequestSpan>,
    /// Trace context that is passed on to the API although this server does not trace.
    passed_on: Option<TraceContext>,
}

/// The span of a request to the API.
struct OpenRequestSpan {
    span: OpenSpan,
    url_template: Option<String>,
    /// Number of times that the request was sent before.
    resends: u32,
}

impl<'u> RequestTimer<'u> {
    /// A request leaves for an origin.
    pub(crate) fn start(method: &Method, origin: &'u OriginLabels) -> Self {
        if observe::metrics().is_none() && observe::tracer().is_none() {
            return Self(None);
        }
        let mut timed = TimedRequest {
            method: method.clone(),
            origin,
            started: Instant::now(),
            span: None,
            passed_on: None,
        };
        if observe::tracer().is_some() {
            with_current(|call, parent| match parent {
                Some(parent) => {
                    timed.span = Some(OpenRequestSpan {
                        span: parent.child(),
                        url_template: call.operation.as_ref().map(|operation| {
                            text::truncate(&operation.path_template, MAX_TEMPLATE_BYTES)
                        }),
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
            (Some(parent), _) => {
                Some((parent.as_str(), ours.and_then(|span| span.state.as_deref())))
            }
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
    pub(crate) fn end(mut self, result: Result<u16, CallOutcome>) {
        let Some(mut timed) = self.0.take() else {
            return;
        };
        if let Some(metrics) = observe::metrics() {
            metrics.request(&timed.method, timed.origin, result, timed.started.elapsed());
        }
        timed.end_span(result);
    }
}

impl Drop for RequestTimer<'_> {
    /// A request that is dropped was given up.
    fn drop(&mut self) {
        if let Some(timed) = &mut self.0 {
            timed.end_span(Err(CallOutcome::Cancelled));
        }
    }
}

impl TimedRequest<'_> {
    fn end_span(&mut self, result: Result<u16, CallOutcome>) {
        let Some(open) = self.span.take().filter(|open| open.span.is_sampled) else {
            return;
        };
        let has_failed = result.map_or(true, |status| status >= 400);
        let attributes = self.attributes(&open, result);
        let method = match known_method(&self.method) {
            OTHER => "HTTP",
            method => method,
        };
        let name = match &open.url_template {
            Some(template) => format!("{method} {template}"),
            None => method.to_owned(),
        };
        if let Some(tracer) = observe::tracer() {
            tracer.finish(open.span.end(name, attributes, has_failed));
        }
    }

    /// The attributes of OpenTelemetry's conventions for HTTP clients, without `url.full`, which
    /// holds values.
    fn attributes(&self, open: &OpenRequestSpan, result: Result<u16, CallOutcome>) -> Attributes {
        let text = |text: &str| AttributeValue::Text(text.to_owned().into());
        let number = |number: u32| AttributeValue::Number(number.into());
        let mut attributes = vec![
            ("server.address", text(&self.origin.host)),
            ("server.port", number(self.origin.port.into())),
        ];
        match known_method(&self.method) {
            OTHER => {
                attributes.push(("http.request.method", AttributeValue::Text("_OTHER".into())));
                attributes.push(("http.request.method_original", text(self.method.as_str())));
            }
            method => attributes.push(("http.request.method", AttributeValue::Text(method.into()))),
        }
        if let Some(template) = &open.url_template {
            attributes.push(("url.template", text(template)));
        }
        if open.resends > 0 {
            attributes.push(("http.request.resend_count", number(open.resends)));
        }
        let error = match result {
            Ok(status) => {
                attributes.push(("http.response.status_code", number(status.into())));
                (status >= 400).then(|| text(&status.to_string()))
            }
            Err(outcome) => Some(AttributeValue::Text(outcome.error_type().into())),
        };
        attributes.extend(error.map(|error| ("error.type", error)));
        attributes
    }
}
