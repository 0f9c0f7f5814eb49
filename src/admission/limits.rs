//! Limits for clients: connections, and requests of each client per second.
//!
//! # Adding a limit of requests of clients, before they are read
//!
//! - `Limits` and `RateLimit` in `admission/limits.rs`; `admit` in `admission/mod.rs` counts each
//!   request, refused ones included, and answers. What costs more than a comparison counts before
//!   it is done: `Stranger`.
//! - The setting: `client_limits` in `config/clients/mod.rs`, from a field of `AccessSettings`.
//! - The reason in `REFUSAL_REASONS` in `observe/metrics/labels.rs`.
//! - Replicas count together with `SharedRate` in `shared_state/rate.rs`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::caller::ClientKey;
use crate::shared_state::rate::{SharedRate, TakenPlace};
use crate::shared_state::state::SharedState;

/// Limits that an operator may change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The maximum number of open connections; further ones wait to be accepted.
    pub connections: usize,
    /// Requests per second of one client; `None` is no limit.
    pub rate: Option<f64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            rate: None,
        }
    }
}

/// Clients that are counted separately; all others share one count.
const MAX_CLIENTS: usize = 10_000;

/// The shortest time between two removals of idle clients.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Limits requests by the generic cell rate algorithm (ITU-T I.371): an idle client may send the
/// requests of one second at once, and then one each interval. The crate for it (governor) would
/// add 22 dependencies.
pub(crate) struct RateLimit {
    interval: Duration,
    burst: Duration,
    clients: Mutex<ClientTable>,
    /// State in which the limit of all replicas is counted. That of this process stays in force, so
    /// there is a limit without the shared one too.
    shared: Option<Arc<SharedState>>,
}

#[derive(Default)]
struct ClientTable {
    /// For each client, the time at which its requests so far would have been sent at the even
    /// rate.
    due: HashMap<ClientKey, Instant>,
    /// Time at which idle clients were last removed.
    swept: Option<Instant>,
}

impl RateLimit {
    /// `rate` requests a second.
    pub(crate) fn new(rate: f64, shared: Option<Arc<SharedState>>) -> Self {
        let interval = Duration::from_secs_f64(1.0 / rate);
        Self {
            interval,
            burst: interval
                .max(Duration::from_secs(1))
                .saturating_sub(interval),
            clients: Mutex::default(),
            shared,
        }
    }

    /// Counts a request in this process and in all replicas together, or says how long the client
    /// has to wait.
    pub(crate) async fn admit(&self, client: ClientKey) -> Result<(), Duration> {
        self.take(client, Instant::now())?;
        let Some(shared) = &self.shared else {
            return Ok(());
        };
        let subject: [&[u8]; 2] = [b"client", &client.0.to_be_bytes()];
        let limit = SharedRate::new(shared, &subject, self.interval, self.burst);
        match limit.take(Duration::ZERO, Duration::ZERO).await {
            Ok(TakenPlace::None(wait)) => Err(wait),
            Ok(TakenPlace::After(_)) | Err(_) => Ok(()),
        }
    }

    /// Counts a request in this process, or says how long the client has to wait.
    fn take(&self, mut client: ClientKey, now: Instant) -> Result<(), Duration> {
        let mut clients = self.clients.lock();
        let ClientTable { due, swept } = &mut *clients;
        if due.len() >= MAX_CLIENTS && !due.contains_key(&client) {
            // Not for each new client: a flood of new clients would cause a scan each.
            if swept.is_none_or(|at| now.saturating_duration_since(at) >= SWEEP_INTERVAL) {
                due.retain(|_, at| *at > now);
                *swept = Some(now);
            }
            if due.len() >= MAX_CLIENTS {
                client = ClientKey::named("others", &[]);
            }
        }
        let at = due.entry(client).or_insert(now);
        let earliest = (*at).max(now);
        let wait = earliest.saturating_duration_since(now);
        if wait > self.burst {
            return Err(wait.saturating_sub(self.burst));
        }
        *at = earliest + self.interval;
        Ok(())
    }
}

/// The sender of a request, as long as it has not proved who it is.
pub(super) struct Stranger<'r> {
    /// The key of its address.
    pub(super) address: ClientKey,
    rate: Option<&'r RateLimit>,
    is_counted: bool,
}

impl<'r> Stranger<'r> {
    pub(super) fn new(address: ClientKey, rate: Option<&'r RateLimit>) -> Self {
        Self {
            address,
            rate,
            is_counted: false,
        }
    }

    /// Counts its request for its address, once, or says how long it has to wait.
    pub(super) async fn count(&mut self) -> Result<(), Duration> {
        match self.rate {
            Some(rate) if !self.is_counted => {
                self.is_counted = true;
                rate.admit(self.address).await
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    #[test]
    fn a_client_gets_a_seconds_worth_at_once_and_then_one_at_a_time() {
        let limit = RateLimit::new(4.0, None);
        let (one, other) = (ClientKey::named("t", b"1"), ClientKey::named("t", b"2"));
        let mut now = Instant::now();
        for _ in 0..4 {
            assert_eq!(limit.take(one, now), Ok(()));
        }
        assert_eq!(limit.take(one, now), Err(Duration::from_millis(250)));
        assert_eq!(limit.take(other, now), Ok(()), "others are not concerned");
        now += Duration::from_millis(250);
        assert_eq!(limit.take(one, now), Ok(()));
        assert!(limit.take(one, now).is_err());
        now += Duration::from_hours(1);
        for _ in 0..4 {
            assert_eq!(limit.take(one, now), Ok(()));
        }
        assert!(
            limit.take(one, now).is_err(),
            "an hour of silence is no credit for an hour"
        );
    }

    #[test]
    fn less_than_one_a_second_is_possible() {
        let (limit, now) = (RateLimit::new(0.5, None), Instant::now());
        let client = ClientKey::named("t", b"1");
        assert_eq!(limit.take(client, now), Ok(()));
        assert_eq!(limit.take(client, now), Err(Duration::from_secs(2)));
    }

    #[test]
    fn a_crowd_of_addresses_takes_bounded_memory() {
        let (limit, now) = (RateLimit::new(1.0, None), Instant::now());
        for number in 0..50_000_u32 {
            let _ = limit.take(ClientKey::at(IpAddr::V4(number.into())), now);
        }
        assert!(limit.clients.lock().due.len() <= MAX_CLIENTS + 1);
        assert_eq!(
            limit.take(ClientKey::named("t", b"new"), now + Duration::from_secs(2)),
            Ok(())
        );
    }
}
