//! Agreements by a link, in metrics and in the audit log.

use std::time::SystemTime;

use super::audit::line::AuditLine;
use super::observers;

/// Counts a question, or what became of it.
pub(crate) fn count(outcome: &'static str) {
    if let Some(metrics) = observers::metrics() {
        metrics.approval(outcome);
    }
}

/// Records an answer. `question` is that of the calls, and `approver` the name of who gave it.
pub(crate) fn record(question: &str, approver: &str, agreed: bool) {
    count(if agreed { "agreed" } else { "declined" });
    if let Some(audit) = observers::audit() {
        let mut line = AuditLine::new("approval", SystemTime::now());
        line.text("question", Some(question), 64);
        line.text("approver", Some(approver), 512);
        line.flag("agreed", agreed);
        audit.write(line.finish());
    }
}
