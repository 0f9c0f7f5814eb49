//! A circuit breaker: an upstream that fails again and again is left alone for a while, and then
//! tried by one call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The breaker of one upstream.
pub(crate) struct Breaker {
    /// Number of failures in a row after which it opens; 0 is never.
    max_failures: u32,
    /// Time for which it stays open before a call may try again.
    pause: Duration,
    failures: AtomicU32,
    /// True if it is closed. It is read first, so a healthy upstream needs no lock.
    is_closed: AtomicBool,
    state: Mutex<BreakerState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerState {
    /// Calls are made.
    Closed,
    /// Time until which no call is made.
    Open { until: Instant },
    /// One call tries, and the others wait for what becomes of it.
    HalfOpen,
}

/// Outcome of a call for the upstream's health.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The upstream answered.
    Success,
    /// The upstream cannot be reached, is too slow, or reports that it cannot serve (502, 503,
    /// 504).
    Failure,
    /// The call says nothing about that.
    Unknown,
}

/// No call is made, because the upstream failed too often.
#[derive(Debug)]
pub(crate) struct CircuitOpen {
    /// Number of failures in a row.
    pub(crate) failures: u32,
    /// Remaining pause; zero while another call tries.
    pub(crate) left: Duration,
}

/// Leave to make a call.
pub(crate) struct Permit<'b> {
    breaker: &'b Breaker,
    /// True if this call decides about all that follow.
    pub(crate) is_probe: bool,
}

impl Breaker {
    /// Opens after `max_failures` failures in a row (0: never), for `pause`.
    pub(crate) fn new(max_failures: u32, pause: Duration) -> Self {
        Self {
            max_failures,
            pause,
            failures: AtomicU32::new(0),
            is_closed: AtomicBool::new(true),
            state: Mutex::new(BreakerState::Closed),
        }
    }

    /// Returns true if it lets no call pass, or only a probe.
    pub(crate) fn is_open(&self) -> bool {
        !self.is_closed.load(Ordering::Acquire)
    }

    /// Enters another state.
    fn enter(&self, state: &mut BreakerState, next: BreakerState) {
        *state = next;
        self.is_closed
            .store(next == BreakerState::Closed, Ordering::Release);
    }

    /// Leave to make a call. After the pause one call gets it, and the others wait for what becomes
    /// of that.
    ///
    /// # Errors
    /// [`CircuitOpen`] while it is open or half open.
    pub(crate) fn admit(&self) -> Result<Permit<'_>, CircuitOpen> {
        let permit = |is_probe| Permit {
            breaker: self,
            is_probe,
        };
        if !self.is_open() {
            return Ok(permit(false));
        }
        let mut state = self.state.lock();
        let left = match *state {
            BreakerState::Closed => return Ok(permit(false)),
            BreakerState::Open { until } => until.saturating_duration_since(Instant::now()),
            BreakerState::HalfOpen => Duration::ZERO,
        };
        if left.is_zero() && *state != BreakerState::HalfOpen {
            self.enter(&mut state, BreakerState::HalfOpen);
            return Ok(permit(true));
        }
        Err(CircuitOpen {
            failures: self.failures.load(Ordering::Relaxed),
            left,
        })
    }

    fn on_success(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        if self.is_open() {
            self.enter(&mut self.state.lock(), BreakerState::Closed);
            tracing::info!("the API answers again");
        }
    }

    fn on_failure(&self, is_probe: bool) {
        if self.max_failures == 0 {
            return;
        }
        let failures = self
            .failures
            .fetch_add(1, Ordering::Relaxed)
            .saturating_add(1);
        let mut state = self.state.lock();
        if is_probe || (*state == BreakerState::Closed && failures >= self.max_failures) {
            let until = Instant::now() + self.pause;
            self.enter(&mut state, BreakerState::Open { until });
            tracing::warn!(
                "the API failed {failures} times in a row; it is tried again in {} s",
                self.pause.as_secs_f32()
            );
        }
    }

    /// A probe that says nothing leaves its place to the next call.
    fn on_abandoned_probe(&self) {
        let mut state = self.state.lock();
        if *state == BreakerState::HalfOpen {
            let until = Instant::now();
            self.enter(&mut state, BreakerState::Open { until });
        }
    }
}

impl Permit<'_> {
    /// Records the outcome of the call.
    pub(crate) fn settle(mut self, health: Outcome) {
        let is_probe = std::mem::take(&mut self.is_probe);
        match health {
            Outcome::Success => self.breaker.on_success(),
            Outcome::Failure => self.breaker.on_failure(is_probe),
            Outcome::Unknown if is_probe => self.breaker.on_abandoned_probe(),
            Outcome::Unknown => {}
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if self.is_probe {
            self.breaker.on_abandoned_probe();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAUSE: Duration = Duration::from_secs(30);

    #[test]
    fn it_opens_after_failures_in_a_row_and_closes_after_a_call_that_succeeds() {
        let breaker = Breaker::new(3, PAUSE);
        let settle = |health| breaker.admit().unwrap().settle(health);
        let state = || *breaker.state.lock();
        let end_pause = || match &mut *breaker.state.lock() {
            BreakerState::Open { until } => *until -= PAUSE,
            other => panic!("{other:?}"),
        };
        [Outcome::Failure, Outcome::Failure, Outcome::Success]
            .into_iter()
            .for_each(&settle);
        [Outcome::Failure, Outcome::Failure, Outcome::Unknown]
            .into_iter()
            .for_each(&settle);
        assert_eq!(
            state(),
            BreakerState::Closed,
            "a success starts the count anew, and what says nothing does not count"
        );
        settle(Outcome::Failure);
        assert!(matches!(state(), BreakerState::Open { .. }));
        assert!(
            matches!(breaker.admit(), Err(CircuitOpen { failures: 3, left }) if left <= PAUSE && !left.is_zero())
        );

        end_pause();
        let probe = breaker.admit().unwrap();
        assert!(probe.is_probe && state() == BreakerState::HalfOpen);
        assert!(breaker.admit().is_err(), "one probe at a time");
        drop(probe);
        let probe = breaker.admit().unwrap();
        assert!(
            probe.is_probe,
            "a probe that is given up leaves its place to the next call"
        );
        probe.settle(Outcome::Failure);
        assert!(
            breaker.admit().is_err(),
            "it is open again for the whole pause"
        );

        end_pause();
        breaker.admit().unwrap().settle(Outcome::Success);
        assert_eq!(state(), BreakerState::Closed);
        assert!(!breaker.admit().unwrap().is_probe);
    }

    #[test]
    fn without_a_number_of_failures_it_never_opens() {
        let never = Breaker::new(0, Duration::ZERO);
        (0..100).for_each(|_| never.admit().unwrap().settle(Outcome::Failure));
        assert!(never.admit().is_ok());
    }
}
