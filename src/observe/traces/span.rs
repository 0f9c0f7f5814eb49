//! Spans, from the choice of their identifiers to their end.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::context::TraceContext;

/// The kinds of spans of a server that is a client of its upstream.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Server,
    Client,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    Text(Cow<'static, str>),
    Number(i64),
}

/// Attributes by their names in OpenTelemetry's conventions.
pub(crate) type Attributes = Vec<(&'static str, AttributeValue)>;

/// The place of a span in its trace.
#[derive(Clone)]
pub(crate) struct SpanPlace {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) parent: Option<u64>,
    /// True if the parent is a span of another process.
    pub(super) has_remote_parent: bool,
    pub(super) is_sampled: bool,
    /// `tracestate` of the trace.
    pub(super) state: Option<Box<str>>,
    pub(super) links: Vec<TraceContext>,
}

/// A span that has ended.
pub(crate) struct FinishedSpan {
    pub(super) place: SpanPlace,
    pub(super) kind: SpanKind,
    pub(super) name: String,
    pub(super) started: SystemTime,
    pub(super) duration: Duration,
    pub(super) attributes: Attributes,
    pub(super) has_failed: bool,
}

/// A span that has begun.
pub(crate) struct OpenSpan {
    place: SpanPlace,
    kind: SpanKind,
    started: SystemTime,
    /// The same moment on the clock that is never adjusted.
    opened: Instant,
}

impl OpenSpan {
    pub(super) fn new(place: SpanPlace, kind: SpanKind) -> Self {
        Self {
            place,
            kind,
            started: SystemTime::now(),
            opened: Instant::now(),
        }
    }

    /// A span below this one, which begins now. The system's clock may be adjusted between the two,
    /// so that it is read for the first alone.
    pub(crate) fn child(&self, kind: SpanKind) -> Self {
        let place = SpanPlace {
            span_id: random_span_id(),
            parent: Some(self.place.span_id),
            has_remote_parent: false,
            links: Vec::new(),
            ..self.place.clone()
        };
        let opened = Instant::now();
        Self {
            place,
            kind,
            started: self.started + opened.saturating_duration_since(self.opened),
            opened,
        }
    }

    /// Returns true if the span is recorded.
    pub(crate) fn is_sampled(&self) -> bool {
        self.place.is_sampled
    }

    /// `traceparent` for what is asked on behalf of this span (W3C Trace Context, section 3.2).
    pub(crate) fn traceparent(&self) -> String {
        let SpanPlace {
            trace_id,
            span_id,
            is_sampled,
            ..
        } = &self.place;
        format!(
            "00-{trace_id:032x}-{span_id:016x}-{:02x}",
            u8::from(*is_sampled)
        )
    }

    /// `tracestate` that goes with it.
    pub(crate) fn tracestate(&self) -> Option<&str> {
        self.place.state.as_deref()
    }

    /// The identifier of its trace, in hexadecimal digits.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.place.trace_id)
    }

    /// Ends it now. It is measured with the clock that it began with, so that one below it that has
    /// ended before ends before in the trace as well.
    pub(crate) fn end(
        &self,
        name: String,
        attributes: Attributes,
        has_failed: bool,
    ) -> FinishedSpan {
        FinishedSpan {
            place: self.place.clone(),
            kind: self.kind,
            name,
            started: self.started,
            duration: self.opened.elapsed(),
            attributes,
            has_failed,
        }
    }
}

/// Keyed with randomness of the system, so that a count becomes identifiers that no other process
/// has.
static KEYS: LazyLock<[RandomState; 2]> =
    LazyLock::new(|| [RandomState::new(), RandomState::new()]);
static NEXT: AtomicU64 = AtomicU64::new(0);

/// An identifier of a span; not 0.
pub(super) fn random_span_id() -> u64 {
    let [keys, _] = &*KEYS;
    keys.hash_one(NEXT.fetch_add(1, Ordering::Relaxed)).max(1)
}

/// An identifier of a trace; not 0.
pub(super) fn random_trace_id() -> u128 {
    let [high, low] = &*KEYS;
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    u128::from(high.hash_one(number)) << 64 | u128::from(low.hash_one(number).max(1))
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn a_span_ends_no_earlier_than_those_below_it_that_have_ended() {
        let place = SpanPlace {
            trace_id: random_trace_id(),
            span_id: random_span_id(),
            parent: None,
            has_remote_parent: false,
            is_sampled: true,
            state: None,
            links: Vec::new(),
        };
        let end = |span: &OpenSpan| {
            let span = span.end(String::new(), Attributes::new(), false);
            (span.started, span.started + span.duration)
        };
        let parent = OpenSpan::new(place, SpanKind::Server);
        // The thread may wait at any point, so also between the begin of the span and that of other
        // measurements.
        sleep(Duration::from_millis(2));
        let child = parent.child(SpanKind::Client);
        let ((child_began, child_ended), (began, ended)) = (end(&child), end(&parent));
        assert!(
            began + Duration::from_millis(2) <= child_began
                && child_began <= child_ended
                && child_ended <= ended
        );
    }
}
