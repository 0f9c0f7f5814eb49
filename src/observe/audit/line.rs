//! Lines of the audit log: one JSON object each, at most 4 KiB, so that several processes can
//! append to one file. Requests that are refused before their body is read have one line a minute
//! for each reason, with their number.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use jiff::Timestamp;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::text;

/// A line is not longer than this, its newline included.
pub(crate) const MAX_LINE_BYTES: usize = 4096;
/// Length of most lines.
const USUAL_LINE_BYTES: usize = 768;

/// A line that is being written, with its members in their order.
pub(crate) struct AuditLine<'r>(Vec<(&'static str, AuditValue<'r>)>);

enum AuditValue<'r> {
    Text(Option<Cow<'r, str>>),
    Number(Option<u64>),
    Flag(bool),
    /// JSON of a bounded length.
    Json(Box<RawValue>),
}

impl<'r> AuditLine<'r> {
    pub(crate) fn new(event: &'static str, time: SystemTime) -> Self {
        let mut line = Self(Vec::with_capacity(24));
        line.0
            .push(("time", AuditValue::Text(Some(rfc_3339(time).into()))));
        line.0.push(("event", AuditValue::Text(Some(event.into()))));
        line
    }

    /// A text of at most `max_bytes` bytes, or `null`.
    pub(crate) fn text(&mut self, name: &'static str, value: Option<&'r str>, max_bytes: usize) {
        let value = value.map(|value| {
            let is_clean =
                value.len() <= max_bytes && value.bytes().all(|byte| byte.is_ascii_graphic());
            if is_clean {
                Cow::Borrowed(value)
            } else {
                text::truncate(&text::one_line(value), max_bytes).into()
            }
        });
        self.0.push((name, AuditValue::Text(value)));
    }

    pub(crate) fn number(&mut self, name: &'static str, value: Option<u64>) {
        self.0.push((name, AuditValue::Number(value)));
    }

    pub(crate) fn flag(&mut self, name: &'static str, value: bool) {
        self.0.push((name, AuditValue::Flag(value)));
    }

    /// An object of at most 512 bytes.
    pub(crate) fn object(&mut self, name: &'static str, value: &impl Serialize) {
        const MAX_OBJECT_BYTES: usize = 512;
        let value = to_raw_value(value)
            .ok()
            .filter(|value| value.get().len() <= MAX_OBJECT_BYTES);
        self.0
            .push((name, value.map_or(AuditValue::Text(None), AuditValue::Json)));
    }

    /// The line with its newline. What escapes make too long loses its longest texts.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        loop {
            let line = self.write();
            if line.len() <= MAX_LINE_BYTES || !self.halve_longest_text() {
                return line;
            }
        }
    }

    fn write(&self) -> Vec<u8> {
        let mut line = Vec::with_capacity(USUAL_LINE_BYTES);
        for (index, (name, value)) in self.0.iter().enumerate() {
            line.extend_from_slice(if index == 0 { b"{\"" } else { b",\"" });
            line.extend_from_slice(name.as_bytes());
            line.extend_from_slice(b"\":");
            // Into memory, and without keys that could be no texts.
            let _ = match value {
                AuditValue::Text(text) => serde_json::to_writer(&mut line, text),
                AuditValue::Number(number) => serde_json::to_writer(&mut line, number),
                AuditValue::Flag(flag) => serde_json::to_writer(&mut line, flag),
                AuditValue::Json(json) => serde_json::to_writer(&mut line, json),
            };
        }
        line.extend_from_slice(b"}\n");
        line
    }

    /// Cuts the longest of the texts in half; `false` if no text is left.
    fn halve_longest_text(&mut self) -> bool {
        let texts = self.0.iter_mut().filter_map(|(_, value)| match value {
            AuditValue::Text(Some(text)) if !text.is_empty() => Some(text),
            _ => None,
        });
        let Some(longest) = texts.max_by_key(|text| text.len()) else {
            return false;
        };
        *longest = longest
            .chars()
            .take(longest.chars().count() / 2)
            .collect::<String>()
            .into();
        true
    }
}

/// `2026-07-28T12:34:56.789Z`.
fn rfc_3339(time: SystemTime) -> String {
    Timestamp::try_from(time)
        .map(|time| format!("{time:.3}"))
        .unwrap_or_default()
}

/// Interval at which the log reports that requests were refused for one reason.
const REFUSAL_INTERVAL: Duration = Duration::from_mins(1);
/// Number of reasons that are distinguished; they are this program's own.
const MAX_REASONS: usize = 32;

/// The refused requests, by reason.
#[derive(Default)]
pub(super) struct RefusalCounts(Mutex<BTreeMap<&'static str, RefusalCount>>);

struct RefusalCount {
    told: Instant,
    untold: u64,
}

impl RefusalCounts {
    /// Counts a refused request. Returns the line of a reason that was not reported within the last
    /// minute.
    pub(super) fn count(&self, reason: &'static str) -> Option<Vec<u8>> {
        let mut counts = self.0.lock();
        if counts.len() >= MAX_REASONS && !counts.contains_key(reason) {
            return None;
        }
        if let Some(known) = counts.get_mut(reason) {
            known.untold += 1;
            return known.is_due().then(|| known.tell(reason));
        }
        let first = RefusalCount {
            told: Instant::now(),
            untold: 0,
        };
        counts.insert(reason, first);
        Some(line_of(reason, 1))
    }

    /// Returns the lines of reasons that were not reported for a minute.
    pub(super) fn due(&self) -> Vec<Vec<u8>> {
        self.tell_where(RefusalCount::is_due)
    }

    /// Returns the lines of all unreported reasons.
    pub(super) fn rest(&self) -> Vec<Vec<u8>> {
        self.tell_where(|_| true)
    }

    fn tell_where(&self, is_due: impl Fn(&RefusalCount) -> bool) -> Vec<Vec<u8>> {
        let mut counts = self.0.lock();
        counts
            .iter_mut()
            .filter(|(_, known)| known.untold > 0 && is_due(known))
            .map(|(reason, known)| known.tell(reason))
            .collect()
    }
}

impl RefusalCount {
    /// Returns true if the reason was not reported within the last minute.
    fn is_due(&self) -> bool {
        self.told.elapsed() >= REFUSAL_INTERVAL
    }

    fn tell(&mut self, reason: &str) -> Vec<u8> {
        self.told = Instant::now();
        line_of(reason, std::mem::take(&mut self.untold))
    }
}

fn line_of(reason: &str, count: u64) -> Vec<u8> {
    let mut line = AuditLine::new("refused", SystemTime::now());
    line.text("reason", Some(reason), 64);
    line.number("count", Some(count));
    line.finish()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use serde_json::Value;

    use super::*;

    #[test]
    fn times_are_utc_with_milliseconds() {
        for (millis, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_785_242_096_789, "2026-07-28T12:34:56.789Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(
                rfc_3339(UNIX_EPOCH + Duration::from_millis(millis)),
                expected
            );
        }
    }

    #[test]
    fn no_line_is_longer_than_one_write_may_be() {
        let mut line = AuditLine::new("call", UNIX_EPOCH);
        let long = "\u{1}\"\\é".repeat(2000);
        for name in ["client", "path", "tool", "api"] {
            line.text(name, Some(&long), 3000);
        }
        line.number("status", Some(200));
        let line = line.finish();
        assert!(line.len() <= MAX_LINE_BYTES, "{}", line.len());
        let read: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read["status"], 200);
    }
}
