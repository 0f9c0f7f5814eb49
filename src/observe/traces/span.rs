//! Spans, from the choice of their identifiers to their end, and trace contexts of clients, as W3C
//! Trace Context writes them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The value of an attribute.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    Text(Cow<'static, str>),
    Number(i64),
}

/// Attributes by their names in OpenTelemetry's conventions.
pub(crate) type Attributes = Vec<(&'static str, AttributeValue)>;

/// A span that has begun.
#[derive(Clone)]
pub(crate) struct OpenSpan {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) parent: Option<u64>,
    /// True if the parent is a span of another process.
    pub(super) has_remote_parent: bool,
    pub(crate) is_sampled: bool,
    /// `tracestate` of the trace.
    pub(crate) state: Option<Box<str>>,
    pub(super) links: Vec<TraceContext>,
    /// True for a request to the API, and false for one of a client.
    pub(super) is_client: bool,
    pub(super) started: SystemTime,
    /// The same moment on the clock that is never adjusted.
    pub(super) opened: Instant,
}

/// A span that has ended.
pub(crate) struct FinishedSpan {
    pub(super) span: OpenSpan,
    pub(super) name: String,
    pub(super) duration: Duration,
    pub(super) attributes: Attributes,
    pub(super) has_failed: bool,
}

impl OpenSpan {
    /// A span of a request below this one, which begins now. The system's clock may be adjusted
    /// between the two, so that it is read for the first alone.
    pub(crate) fn child(&self) -> Self {
        let opened = Instant::now();
        Self {
            span_id: random_span_id(),
            parent: Some(self.span_id),
            has_remote_parent: false,
            links: Vec::new(),
            is_client: true,
            started: self.started + opened.saturating_duration_since(self.opened),
            opened,
            ..self.clone()
        }
    }

    /// `traceparent` for what is asked on behalf of this span (W3C Trace Context, section 3.2).
    pub(crate) fn traceparent(&self) -> String {
        let (trace_id, span_id) = (self.trace_id, self.span_id);
        let flags = u8::from(self.is_sampled);
        format!("00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }

    /// The identifier of its trace, in hexadecimal digits.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
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
            span: self.clone(),
            name,
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

/// The most characters and members of a `tracestate` that is kept.
const MAX_STATE_CHARS: usize = 512;
const MAX_STATE_MEMBERS: usize = 32;
/// Characters of a key of `tracestate`.
const MAX_KEY_CHARS: usize = 256;

/// A valid `traceparent`, with its `tracestate` if that is valid too.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(crate) is_sampled: bool,
    /// `tracestate` as it came.
    pub(crate) state: Option<Box<str>>,
    /// `traceparent` as it came.
    parent: Box<str>,
}

impl TraceContext {
    /// Reads the context of a `traceparent` and its `tracestate` (W3C Trace Context, sections 3.2
    /// and 3.3); `None` if the first is not valid. A `tracestate` that is not valid is left out.
    pub(crate) fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let mut parts = parent.split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is_hex = |text: &str, length: usize| {
            text.len() == length
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        };
        let is_well_formed = parts.next().is_none()
            && is_hex(version, 2)
            && is_hex(trace, 32)
            && is_hex(span, 16)
            && is_hex(flags, 2);
        let trace_id = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
        let span_id = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
        let flags = u8::from_str_radix(flags, 16).ok()?;
        (is_well_formed && version != "ff").then(|| Self {
            trace_id,
            span_id,
            is_sampled: flags & 1 == 1,
            state: state.filter(|state| is_trace_state(state)).map(Box::from),
            parent: parent.into(),
        })
    }

    /// The identifier of its trace, in hexadecimal digits.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The two headers as they came.
    pub(crate) fn texts(&self) -> (&str, Option<&str>) {
        (&self.parent, self.state.as_deref())
    }

    /// Returns true if both name the same span.
    pub(super) fn is_same_span(&self, other: &Self) -> bool {
        (self.trace_id, self.span_id) == (other.trace_id, other.span_id)
    }
}

/// Returns true if a text is a list of members with keys of their own, within the limits.
fn is_trace_state(text: &str) -> bool {
    let members = text
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']));
    let mut present = members
        .clone()
        .filter(|member| !member.is_empty())
        .peekable();
    let mut keys = HashSet::new();
    text.len() <= MAX_STATE_CHARS
        && members.count() <= MAX_STATE_MEMBERS
        && present.peek().is_some()
        && present.all(|member| key_of(member).is_some_and(|key| keys.insert(key)))
}

/// Returns the key of a member `key=value`, if both follow the grammar.
fn key_of(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_key = key.as_bytes().first().is_some_and(is_word)
        && key
            .bytes()
            .all(|byte| is_word(&byte) || b"_-*/@".contains(&byte))
        && key.matches('@').count() <= 1
        && key.len() <= MAX_KEY_CHARS;
    let is_legal = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'=';
    (is_key && !value.is_empty() && value.bytes().all(is_legal)).then_some(key)
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use super::*;

    #[test]
    fn a_span_ends_no_earlier_than_those_below_it_that_have_ended() {
        let parent = OpenSpan {
            trace_id: random_trace_id(),
            span_id: random_span_id(),
            parent: None,
            has_remote_parent: false,
            is_sampled: true,
            state: None,
            links: Vec::new(),
            is_client: false,
            started: SystemTime::now(),
            opened: Instant::now(),
        };
        let end = |span: &OpenSpan| {
            let ended = span.end(String::new(), Attributes::new(), false);
            (span.started, span.started + ended.duration)
        };
        // The thread may wait at any point, so also between the begin of the span and that of other
        // measurements.
        sleep(Duration::from_millis(2));
        let child = parent.child();
        let ((child_began, child_ended), (began, ended)) = (end(&child), end(&parent));
        assert!(
            began + Duration::from_millis(2) <= child_began
                && child_began <= child_ended
                && child_ended <= ended
        );
    }
}
