//! Traces by OpenTelemetry's conventions for MCP and for HTTP: a span for each request of a client,
//! and below it one for each request to the API.
//!
//! Sampler, queue and exporter are not those of `opentelemetry_sdk` and `opentelemetry-otlp`, which
//! were measured behind the HTTP client of this program (`tests/perf`, 64 clients, every call
//! traced): a call took 46,500 instructions more than one without traces, and takes 39,500 more
//! with this code; the binary was 0.7 MB larger, and the sources only 155 lines shorter. With few
//! traces there is no difference. The SDK also needs a thread of its own, and counts all tries of a
//! batch towards one time limit.

#![cfg_attr(
    not(feature = "otel"),
    expect(dead_code, reason = "without an exporter, no span is made")
)]

#[cfg(feature = "otel")]
mod exporter;
pub(crate) mod options;
mod queue;
pub(crate) mod span;

use std::time::{Instant, SystemTime};

use self::options::{Sampler, TraceOptions};
use self::queue::SpanQueue;
use self::span::{FinishedSpan, OpenSpan, TraceContext};
use crate::outbound::OutboundOptions;

/// The contexts that a request of a client names.
#[derive(Clone, Default)]
pub(crate) struct ArrivedContexts {
    /// Context in `_meta` of the message.
    pub(crate) message: Option<TraceContext>,
    /// Context in the headers of the HTTP request.
    pub(crate) request: Option<TraceContext>,
    /// True if its trace is continued: over stdio, and if the client is authenticated.
    pub(crate) is_trusted: bool,
}

/// Begins spans, and hands those that have ended to the exporter.
pub(crate) struct Tracer(Option<(Sampler, SpanQueue)>);

impl ArrivedContexts {
    /// The context that counts: of the message before that of its HTTP request.
    pub(crate) fn first(&self) -> Option<&TraceContext> {
        self.message.as_ref().or(self.request.as_ref())
    }
}

impl Tracer {
    /// Records nothing; contexts of clients are passed on.
    pub(crate) fn passing_on() -> Self {
        Self(None)
    }

    /// Starts the task that sends spans; `on_drop` is called with the number of lost ones.
    /// `outbound` has the settings of connections to other servers than the API.
    ///
    /// # Errors
    /// A sentence if spans cannot be sent.
    #[cfg(feature = "otel")]
    pub(crate) fn start(
        options: TraceOptions,
        outbound: &OutboundOptions,
        on_drop: fn(usize),
    ) -> Result<Self, String> {
        let sampler = options.sampler;
        let (queue, items) = SpanQueue::new(on_drop);
        exporter::start(options, outbound, queue.clone(), items)?;
        Ok(Self(Some((sampler, queue))))
    }

    /// # Errors
    /// Always: this program was built without traces.
    #[cfg(not(feature = "otel"))]
    pub(crate) fn start(
        _options: TraceOptions,
        _outbound: &OutboundOptions,
        _on_drop: fn(usize),
    ) -> Result<Self, String> {
        Err("this program was built without the feature `otel`".into())
    }

    /// Begins the span of a request of a client; `None` if no spans are recorded. The context of a
    /// client that is not trusted is a link, so that it cannot decide what is recorded.
    pub(super) fn begin(&self, contexts: &ArrivedContexts) -> Option<OpenSpan> {
        let (sampler, _) = self.0.as_ref()?;
        let parent = contexts.first().filter(|_| contexts.is_trusted);
        let trace_id = parent.map_or_else(span::random_trace_id, |parent| parent.trace_id);
        let mut links: Vec<TraceContext> = Vec::new();
        for context in [&contexts.message, &contexts.request].into_iter().flatten() {
            let is_known = |known: &TraceContext| known.is_same_span(context);
            if !parent.is_some_and(is_known) && !links.iter().any(is_known) {
                links.push(context.clone());
            }
        }
        Some(OpenSpan {
            trace_id,
            span_id: span::random_span_id(),
            parent: parent.map(|parent| parent.span_id),
            has_remote_parent: parent.is_some(),
            is_sampled: sampler.records(trace_id, parent.map(|parent| parent.is_sampled)),
            state: parent.and_then(|parent| parent.state.clone()),
            links,
            is_client: false,
            started: SystemTime::now(),
            opened: Instant::now(),
        })
    }

    /// Hands over a span that has ended.
    pub(super) fn finish(&self, span: FinishedSpan) {
        if let Some((_, queue)) = &self.0 {
            queue.push(span);
        }
    }

    /// Waits until all spans so far are sent or lost, for two seconds at most.
    pub(super) async fn flush(&self) {
        if let Some((_, queue)) = &self.0 {
            queue.flush().await;
        }
    }
}
