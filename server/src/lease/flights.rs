//! Acquires with an idempotency key that are under way: a duplicate joins the first and gets its answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::Acquired;
use super::error::LeaseError;
use super::operation::{Key, KeyName};

type Landing = Option<Result<Acquired, LeaseError>>;

#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<KeyName, Flight>>);

struct Flight {
    fingerprint: Arc<str>,
    landing: Arc<watch::Sender<Landing>>,
}

/// Either side of a flight.
pub(super) enum Seat {
    /// Somebody has to fly it: run the request, then [`Flights::land`].
    Pilot(Arc<watch::Sender<Landing>>, watch::Receiver<Landing>),
    Passenger(watch::Receiver<Landing>),
    OtherBody,
}

impl Flights {
    pub(super) fn board(&self, key: &Key) -> Seat {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.entry(key.name.clone()) {
            // One that everybody has left is not joined: its request is being taken back.
            Entry::Occupied(entry) if entry.get().landing.receiver_count() > 0 => {
                let flight = entry.get();
                if flight.fingerprint == key.fingerprint {
                    Seat::Passenger(flight.landing.subscribe())
                } else {
                    Seat::OtherBody
                }
            }
            entry => {
                let (landing, passenger) = watch::channel(None);
                let landing = Arc::new(landing);
                entry.insert_entry(Flight {
                    fingerprint: key.fingerprint.clone(),
                    landing: landing.clone(),
                });
                Seat::Pilot(landing, passenger)
            }
        }
    }

    pub(super) fn land(
        &self,
        key: &Key,
        landing: &Arc<watch::Sender<Landing>>,
        result: Result<Acquired, LeaseError>,
    ) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all
            .get(&key.name)
            .is_some_and(|flight| Arc::ptr_eq(&flight.landing, landing))
        {
            all.remove(&key.name);
        }
        drop(all);
        landing.send_replace(Some(result));
    }
}

/// The pilot's answer.
pub(super) async fn landed(mut passenger: watch::Receiver<Landing>) -> Result<Acquired, LeaseError> {
    match passenger.wait_for(Option::is_some).await {
        Ok(landing) => landing.clone().unwrap_or(Err(LeaseError::ShuttingDown)),
        Err(_) => Err(LeaseError::ShuttingDown),
    }
}
