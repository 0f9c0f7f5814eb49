//! The progress of a call of several requests, as one number that only grows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::caller::ReportProgress;

/// Adds up what the requests for pages report.
pub(super) struct SummedProgress {
    report: ReportProgress,
    /// Bytes of the pages before.
    before: AtomicU64,
}

impl SummedProgress {
    pub(super) fn new(report: ReportProgress) -> Arc<Self> {
        Arc::new(Self {
            report,
            before: AtomicU64::new(0),
        })
    }

    /// The reporter for each request. How much comes in all is not known.
    pub(super) fn reporter(self: &Arc<Self>) -> ReportProgress {
        let sum = Arc::clone(self);
        ReportProgress::new(move |done, _| {
            let done = sum.before.load(Ordering::Relaxed).saturating_add(done);
            if done > sum.report.last() {
                sum.report.report(done, None);
            }
        })
    }

    /// Counts the next request on top of what was reported.
    pub(super) fn begin_page(&self) {
        self.before.store(self.report.last(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    #[test]
    fn the_sum_of_several_requests_only_grows() {
        let reports: Arc<Mutex<Vec<u64>>> = Arc::default();
        let seen = Arc::clone(&reports);
        let sum = SummedProgress::new(ReportProgress::new(move |done, total| {
            assert_eq!(total, None);
            seen.lock().push(done);
        }));
        let report = sum.reporter();
        report.report(10, Some(20));
        report.report(20, Some(20));
        sum.begin_page();
        // A request that is sent again begins anew.
        for done in [5, 3, 8] {
            report.report(done, None);
        }
        assert_eq!(*reports.lock(), [10, 20, 25, 28]);
    }
}
