//! A circuit breaker: an upstream that fails again and again is left alone for a while, and then tried by one call.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::proxy::error::CallError;

/// The breaker of one upstream.
#[derive(Debug)]
pub(crate) struct Breaker {
    /// After so many failures in a row it opens; 0 is never.
    max_failures: u32,
    /// How long it stays open before a call may try again.
    pause: Duration,
    failures: AtomicU32,
    /// Looked at first, so that a healthy upstream costs no lock.
    open: AtomicBool,
    state: Mutex<BreakerState>,
}

#[derive(Debug, Default)]
struct BreakerState {
    until: Option<Instant>,
    probing: bool,
}

/// What became of a call, as far as the upstream's health goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It answered.
    Success,
    /// It cannot be reached, is too slow, or says itself that it cannot serve (502, 503, 504).
    Failure,
    /// The call says nothing about that.
    Unknown,
}

/// Leave to make a call.
#[derive(Debug)]
pub(crate) struct Permit<'b> {
    breaker: &'b Breaker,
    probe: bool,
}

impl Breaker {
    /// Opens after `max_failures` failures in a row (0: never), for `pause`.
    #[must_use]
    pub(crate) fn new(max_failures: u32, pause: Duration) -> Self {
        Self {
            max_failures,
            pause,
            failures: AtomicU32::new(0),
            open: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, BreakerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leave to make a call. After the pause one call gets it, and the others wait for what becomes of that.
    ///
    /// # Errors
    /// [`CallError::CircuitOpen`] while it is open.
    pub(crate) fn admit(&self) -> Result<Permit<'_>, CallError> {
        let pass = |probe| Ok(Permit { breaker: self, probe });
        if !self.open.load(Ordering::Acquire) {
            return pass(false);
        }
        let mut state = self.state();
        let Some(until) = state.until else { return pass(false) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() && !state.probing {
            state.probing = true;
            return pass(true);
        }
        Err(CallError::CircuitOpen {
            failures: self.failures.load(Ordering::Relaxed),
            left,
        })
    }

    fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
        }
        if self.open.load(Ordering::Acquire) {
            *self.state() = BreakerState::default();
            self.open.store(false, Ordering::Release);
            tracing::info!("the API answers again");
        }
    }

    fn failed(&self, probe: bool) {
        if self.max_failures == 0 {
            return;
        }
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let mut state = self.state();
        let first = state.until.is_none() && failures >= self.max_failures;
        if probe || first {
            *state = BreakerState {
                until: Some(Instant::now() + self.pause),
                probing: false,
            };
            self.open.store(true, Ordering::Release);
            tracing::warn!(
                "the API failed {failures} times in a row; it is tried again in {} s",
                self.pause.as_secs_f32()
            );
        }
    }
}

impl Permit<'_> {
    /// Whether this call decides about all that follow.
    #[must_use]
    pub(crate) fn is_probe(&self) -> bool {
        self.probe
    }

    /// Says what became of the call.
    pub(crate) fn settle(mut self, health: Outcome) {
        let probe = std::mem::take(&mut self.probe);
        match health {
            Outcome::Success => self.breaker.succeeded(),
            Outcome::Failure => self.breaker.failed(probe),
            Outcome::Unknown if probe => self.breaker.state().probing = false,
            Outcome::Unknown => {}
        }
    }
}

impl Drop for Permit<'_> {
    /// A probe that was given up leaves the place to the next one.
    fn drop(&mut self) {
        if self.probe {
            self.breaker.state().probing = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_failures_in_a_row_and_one_call_tries_again() {
        let breaker = Breaker::new(3, Duration::ZERO);
        let call = |health| breaker.admit().map(|pass| pass.settle(health)).is_ok();
        assert!(
            call(Outcome::Failure) && call(Outcome::Failure) && call(Outcome::Success),
            "a reply starts the count anew"
        );
        assert!(call(Outcome::Failure) && call(Outcome::Failure) && call(Outcome::Unknown) && call(Outcome::Failure));
        let probe = breaker.admit().unwrap();
        assert!(probe.is_probe() && breaker.admit().is_err(), "one probe at a time");
        drop(probe);
        let probe = breaker.admit().unwrap();
        assert!(probe.is_probe(), "a probe that was given up makes way");
        probe.settle(Outcome::Failure);
        let probe = breaker.admit().unwrap();
        probe.settle(Outcome::Success);
        assert!(!breaker.admit().unwrap().is_probe());

        let paused = Breaker::new(1, Duration::from_mins(1));
        paused.admit().unwrap().settle(Outcome::Failure);
        assert!(matches!(paused.admit(), Err(CallError::CircuitOpen { failures: 1, left }) if left > Duration::from_secs(50)));
        let never = Breaker::new(0, Duration::ZERO);
        (0..100).for_each(|_| never.admit().unwrap().settle(Outcome::Failure));
        assert!(never.admit().is_ok());
    }
}
