//! Trace contexts of clients, as W3C Trace Context writes them.

/// A `tracestate` may have so many characters and members here.
const MAX_STATE_CHARS: usize = 512;
const MAX_STATE_MEMBERS: usize = 32;
/// Characters of a key of `tracestate`.
const MAX_KEY_CHARS: usize = 256;

/// A valid `traceparent`, with its `tracestate` if that is valid too.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(super) trace_id: u128,
    pub(super) span_id: u64,
    pub(super) is_sampled: bool,
    /// `tracestate` as it came.
    pub(super) state: Option<Box<str>>,
    /// `traceparent` as it came.
    pub(super) parent: Box<str>,
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
    let members: Vec<&str> = text
        .split(',')
        .map(|member| member.trim_matches([' ', '\t']))
        .collect();
    let keys: Vec<Option<&str>> = members
        .iter()
        .filter(|member| !member.is_empty())
        .map(|member| key_of(member))
        .collect();
    let is_repeated =
        |(index, key): (usize, Option<&str>)| keys.iter().take(index).any(|other| *other == key);
    text.len() <= MAX_STATE_CHARS
        && members.len() <= MAX_STATE_MEMBERS
        && !keys.is_empty()
        && keys.iter().all(Option::is_some)
        && !keys.iter().copied().enumerate().any(is_repeated)
}

/// Returns the key of a member `key=value`, if both follow the grammar.
fn key_of(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let is_key = key
        .bytes()
        .next()
        .is_some_and(|first| first.is_ascii_lowercase() || first.is_ascii_digit())
        && key.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte)
        })
        && key.matches('@').count() <= 1
        && key.len() <= MAX_KEY_CHARS;
    let is_value = !value.is_empty()
        && value
            .bytes()
            .all(|byte| (b' '..=b'~').contains(&byte) && byte != b'=');
    (is_key && is_value).then_some(key)
}
