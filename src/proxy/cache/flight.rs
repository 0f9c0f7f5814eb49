//! Calls that ask the API for what others wait for as well.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::key::ReplyKey;

/// Outcome of a call that others wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlightOutcome {
    Pending,
    /// A fresh reply for all.
    Stored,
    /// Each has to ask by itself.
    NotStored,
}

/// The requests to the API that are in flight, by key.
#[derive(Default)]
pub(crate) struct Flights(Mutex<HashMap<ReplyKey, watch::Receiver<FlightOutcome>>>);

/// The right to ask the API for a reply. When it is dropped, another call may ask.
pub(crate) struct FlightPlace<'f> {
    flights: &'f Flights,
    key: ReplyKey,
    sender: watch::Sender<FlightOutcome>,
}

impl Flights {
    /// The right to ask, or a receiver for the outcome of the call that has it.
    pub(crate) fn enter(
        &self,
        key: &ReplyKey,
    ) -> Result<FlightPlace<'_>, watch::Receiver<FlightOutcome>> {
        let mut flights = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flight) = flights.get(key) {
            return Err(flight.clone());
        }
        let (sender, receiver) = watch::channel(FlightOutcome::Pending);
        flights.insert(*key, receiver);
        Ok(FlightPlace {
            flights: self,
            key: *key,
            sender,
        })
    }
}

impl FlightPlace<'_> {
    /// Notifies the waiting calls.
    pub(crate) fn end(&mut self, outcome: FlightOutcome) {
        self.sender.send_replace(outcome);
    }
}

impl Drop for FlightPlace<'_> {
    fn drop(&mut self) {
        self.flights
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.key);
    }
}
