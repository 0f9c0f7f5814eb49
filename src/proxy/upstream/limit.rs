//! Limits of one upstream: places for calls in flight, a queue before them, and a rate.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::call_error::CallError;
use crate::shared_state::rate::{SharedRate, TakenPlace};

/// The number of calls that wait for each place.
const WAITING_PER_PLACE: usize = 4;

/// The places of an upstream.
pub(crate) struct ConcurrencyLimit {
    places: Semaphore,
    capacity: usize,
    waiting: AtomicUsize,
}

/// A place in the queue; given back however the wait ends.
struct Waiting<'g>(&'g AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConcurrencyLimit {
    /// Makes a limit of so many calls in flight, and [`WAITING_PER_PLACE`] times as many that wait.
    pub(crate) fn new(places: usize) -> Self {
        let capacity = places.min(Semaphore::MAX_PERMITS);
        Self {
            places: Semaphore::new(capacity),
            capacity,
            waiting: AtomicUsize::new(0),
        }
    }

    /// Calls in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.capacity
            .saturating_sub(self.places.available_permits())
    }

    /// Calls that wait for a place.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A place in the queue.
    ///
    /// # Errors
    /// [`CallError::Busy`] if it is full.
    fn wait(&self) -> Result<Waiting<'_>, CallError> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(&self.waiting);
        if before >= self.capacity.saturating_mul(WAITING_PER_PLACE) {
            return Err(CallError::Busy("too many calls are in flight and waiting"));
        }
        Ok(waiting)
    }

    /// A place, for as long as what is returned lives.
    ///
    /// # Errors
    /// [`CallError::Busy`] at once if the queue is full, or if no place became free in time.
    pub(crate) async fn enter(&self, deadline: Instant) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let waiting = self.wait()?;
        let place = Box::pin(timeout_at(deadline, self.places.acquire())).await;
        drop(waiting);
        match place {
            Ok(Ok(place)) => Ok(place),
            _ => Err(CallError::Busy(
                "other calls were in flight for as long as a call may take",
            )),
        }
    }
}

/// Rate of requests: they leave evenly, so that no second has more than its share.
pub(crate) struct RequestRate {
    interval: Duration,
    next: Mutex<Instant>,
    /// The same limit for all replicas together. That of this process stays in force, so that there
    /// is one without it as well.
    shared: Option<SharedRate>,
}

impl RequestRate {
    /// Makes a rate of so many requests a second, more than 0. `share` makes the limit of all
    /// replicas from the interval.
    pub(crate) fn new(rate: f64, share: impl FnOnce(Duration) -> Option<SharedRate>) -> Self {
        let interval = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::MAX);
        Self {
            interval,
            next: Mutex::new(Instant::now()),
            shared: share(interval),
        }
    }

    /// Waits for the next turn. `max_wait` is the longest that any request waits.
    ///
    /// # Errors
    /// [`CallError::RateLimited`] at once if the turn would be after the deadline.
    pub(crate) async fn turn(
        &self,
        deadline: Instant,
        max_wait: Duration,
    ) -> Result<(), CallError> {
        let mut shared_turn = Instant::now();
        if let Some(shared) = &self.shared {
            match shared
                .take(deadline.saturating_duration_since(shared_turn), max_wait)
                .await
            {
                Ok(TakenPlace::After(wait)) => shared_turn += wait,
                Ok(TakenPlace::None(wait)) => return Err(CallError::RateLimited(wait)),
                Err(_) => {}
            }
        }
        let now = Instant::now();
        let turn = {
            let mut next = self.next.lock();
            let turn = now.max(*next);
            if turn >= deadline {
                return Err(CallError::RateLimited(turn - now));
            }
            *next = turn
                .checked_add(self.interval)
                .unwrap_or(turn + Duration::from_hours(24));
            turn
        };
        let turn = turn.max(shared_turn);
        if turn > now {
            sleep_until(turn).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_queue_refuses_at_once_and_a_free_place_goes_to_who_waits() {
        let limit = ConcurrencyLimit::new(1);
        let soon = || Instant::now() + Duration::from_mins(1);
        let first = limit.enter(soon()).await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING_PER_PLACE)
            .map(|_| Box::pin(limit.enter(soon())))
            .collect();
        for place in &mut waiting {
            assert!(futures_util::poll!(place).is_pending());
        }
        assert!(matches!(limit.enter(soon()).await, Err(CallError::Busy(_))));
        drop(first);
        for place in waiting {
            drop(place.await.unwrap());
        }
        assert_eq!(limit.waiting(), 0);
    }
}
