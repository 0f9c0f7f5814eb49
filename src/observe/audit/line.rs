//! Lines of the audit log: one JSON object each, at most 4 KiB, so that several processes can append to one file.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};

use crate::text;

/// A line is not longer than this, its newline included.
pub(crate) const MAX_LINE_BYTES: usize = 4096;

/// A line that is being written.
pub(crate) struct AuditLine(Map<String, Value>);

impl AuditLine {
    pub(crate) fn new(event: &'static str, time: SystemTime) -> Self {
        let mut members = Map::new();
        members.insert("time".into(), rfc_3339(time).into());
        members.insert("event".into(), event.into());
        Self(members)
    }

    /// A text of at most `max_bytes` bytes, or `null`.
    pub(crate) fn text(&mut self, name: &str, value: Option<&str>, max_bytes: usize) {
        let value = value.map(|value| text::truncate(&text::one_line(value), max_bytes));
        self.0.insert(name.into(), value.into());
    }

    pub(crate) fn number(&mut self, name: &str, value: Option<u64>) {
        self.0.insert(name.into(), value.into());
    }

    pub(crate) fn flag(&mut self, name: &str, value: bool) {
        self.0.insert(name.into(), value.into());
    }

    /// The line with its newline. What escapes make too long loses its longest texts.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut members = Value::Object(self.0);
        loop {
            let mut line = members.to_string().into_bytes();
            line.push(b'\n');
            if line.len() <= MAX_LINE_BYTES || !halve_longest_text(&mut members) {
                return line;
            }
        }
    }
}

/// Cuts the longest of the texts in half; `false` where no text is left.
fn halve_longest_text(members: &mut Value) -> bool {
    let texts = members.as_object_mut().into_iter().flat_map(Map::values_mut);
    let texts = texts.filter_map(|value| match value {
        Value::String(text) if !text.is_empty() => Some(text),
        _ => None,
    });
    let Some(longest) = texts.max_by_key(|text| text.len()) else {
        return false;
    };
    *longest = longest.chars().take(longest.chars().count() / 2).collect();
    true
}

/// `2026-07-28T12:34:56.789Z`.
fn rfc_3339(time: SystemTime) -> String {
    let elapsed = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (elapsed.as_secs() / 86_400, elapsed.as_secs() % 86_400);
    let (year, month, day) = civil_date(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
        elapsed.subsec_millis()
    )
}

/// Year, month and day of so many days after 1970-01-01 in the Gregorian calendar. Counts from the first of March, so that the leap
/// day is the last of a year, and in eras of 400 years, which have the same number of days.
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_OF_ERA: u64 = 146_097;
    /// From 0000-03-01 to 1970-01-01.
    const DAYS_BEFORE_EPOCH: u64 = 719_468;
    let days = days + DAYS_BEFORE_EPOCH;
    let (era, day_of_era) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (DAYS_OF_ERA - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            assert_eq!(rfc_3339(UNIX_EPOCH + Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn no_line_is_longer_than_one_write_may_be() {
        let mut line = AuditLine::new("call", UNIX_EPOCH);
        for name in ["client", "path", "tool", "api"] {
            line.text(name, Some(&"\u{1}\"\\é".repeat(2000)), 3000);
        }
        line.number("status", Some(200));
        let line = line.finish();
        assert!(line.len() <= MAX_LINE_BYTES, "{}", line.len());
        let read: Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(read["status"], 200);
    }
}
