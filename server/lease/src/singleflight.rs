//! Acquires in flight by idempotency key: a duplicate request joins the first and gets its
//! result.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Acquired;
use super::error::LeaseError;
use super::operation::{IdempotencyKey, KeyName};

type FlightResult = Option<Result<Acquired, LeaseError>>;

#[derive(Default)]
pub(super) struct Singleflight(Mutex<HashMap<KeyName, Flight>>);

struct Flight {
    fingerprint: Arc<str>,
    result_tx: Arc<watch::Sender<FlightResult>>,
}

/// Role of a request for a key.
pub(super) enum FlightRole {
    /// The first request: it runs the acquire, then calls [`Singleflight::finish`].
    Leader(Arc<watch::Sender<FlightResult>>, watch::Receiver<FlightResult>),
    Follower(watch::Receiver<FlightResult>),
    FingerprintMismatch,
}

impl Singleflight {
    pub(super) fn join(&self, key: &IdempotencyKey) -> FlightRole {
        let mut all = self.0.lock();
        match all.entry(key.name.clone()) {
            // An abandoned flight is not joined: its grant is being released.
            Entry::Occupied(entry) if entry.get().result_tx.receiver_count() > 0 => {
                let flight = entry.get();
                if flight.fingerprint == key.fingerprint {
                    FlightRole::Follower(flight.result_tx.subscribe())
                } else {
                    FlightRole::FingerprintMismatch
                }
            }
            entry => {
                let (result_tx, result_rx) = watch::channel(None);
                let result_tx = Arc::new(result_tx);
                entry.insert_entry(Flight {
                    fingerprint: key.fingerprint.clone(),
                    result_tx: result_tx.clone(),
                });
                FlightRole::Leader(result_tx, result_rx)
            }
        }
    }

    pub(super) fn finish(
        &self,
        key: &IdempotencyKey,
        result_tx: &Arc<watch::Sender<FlightResult>>,
        result: Result<Acquired, LeaseError>,
    ) {
        let mut all = self.0.lock();
        if all
            .get(&key.name)
            .is_some_and(|flight| Arc::ptr_eq(&flight.result_tx, result_tx))
        {
            all.remove(&key.name);
        }
        drop(all);
        result_tx.send_replace(Some(result));
    }
}

/// Waits for the result of the first request.
pub(super) async fn wait_for_result(
    mut result_rx: watch::Receiver<FlightResult>,
) -> Result<Acquired, LeaseError> {
    match result_rx.wait_for(Option::is_some).await {
        Ok(result_tx) => result_tx.clone().unwrap_or(Err(LeaseError::ShuttingDown)),
        Err(_) => Err(LeaseError::ShuttingDown),
    }
}
