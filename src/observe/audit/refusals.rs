//! Requests that are refused before their body is read: the log reports each reason once a minute,
//! with their number.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;

use super::line::AuditLine;

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
