//! Acquires in flight by idempotency key: a duplicate request joins the first and gets its
//! result.
//!
//! A request that does not wait leads its flight itself: if its client disconnects, the
//! duplicates ask the store, which knows the key. A request that waits in a queue is led by a
//! task, so that it keeps its place while any of its clients is connected; a grant that none of them receives is released.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::Acquired;
use super::error::LeaseError;
use super::grant_receiver::PendingGrant;
use super::operation::{IdempotencyKey, KeyName};

type AcquireResult = Result<Acquired, LeaseError>;
type ResultSender = Arc<watch::Sender<Option<FlightResult>>>;
type ResultReceiver = watch::Receiver<Option<FlightResult>>;

/// The result of a flight, for each of its requests.
#[derive(Clone)]
pub(super) struct FlightResult {
    result: AcquireResult,
    /// The new lease of a task, for the clients that are still connected.
    grant: Option<Arc<PendingGrant>>,
}

#[derive(Default)]
pub(super) struct Singleflight(Mutex<HashMap<KeyName, Flight>>);

struct Flight {
    fingerprint: Arc<str>,
    /// Made for the first duplicate; a task always has one.
    result_tx: Option<ResultSender>,
    is_task: bool,
}

/// Role of a request for a key.
pub(super) enum FlightRole<'a> {
    /// The first request, which does not wait: it runs the acquire, then calls
    /// [`FlightLeader::finish`].
    Leader(FlightLeader<'a>),
    /// The first request, which waits: its task calls [`FlightTask::finish`].
    Task(FlightTask, ResultReceiver),
    Follower(ResultReceiver),
    FingerprintMismatch,
}

/// If it is dropped without a result, its followers join again.
pub(super) struct FlightLeader<'a> {
    flights: &'a Singleflight,
    name: &'a KeyName,
    is_finished: bool,
}

/// The leader of a request that waits. If it is dropped without a result, for example by a panic, its followers join again.
pub(super) struct FlightTask {
    flights: Arc<Singleflight>,
    name: KeyName,
    result_tx: ResultSender,
}

impl Flight {
    /// Its grant is being released, so it is not joined.
    fn is_abandoned(&self) -> bool {
        let receivers = self.result_tx.as_ref().map_or(0, |tx| tx.receiver_count());
        self.is_task && receivers == 0
    }

    fn subscribe(&mut self) -> ResultReceiver {
        self.result_tx
            .get_or_insert_with(|| Arc::new(watch::Sender::new(None)))
            .subscribe()
    }
}

impl Singleflight {
    /// `waits`: in the queue, if the lock is held.
    pub(super) fn join<'a>(self: &'a Arc<Self>, key: &'a IdempotencyKey, waits: bool) -> FlightRole<'a> {
        let mut flights = self.0.lock();
        match flights.entry(key.name.clone()) {
            Entry::Occupied(mut entry) if !entry.get().is_abandoned() => {
                let flight = entry.get_mut();
                if flight.fingerprint == key.fingerprint {
                    FlightRole::Follower(flight.subscribe())
                } else {
                    FlightRole::FingerprintMismatch
                }
            }
            entry => {
                let mut flight = Flight {
                    fingerprint: key.fingerprint.clone(),
                    result_tx: None,
                    is_task: waits,
                };
                let task = waits.then(|| flight.subscribe()).zip(flight.result_tx.clone());
                entry.insert_entry(flight);
                match task {
                    Some((result_rx, result_tx)) => {
                        let task = FlightTask {
                            flights: self.clone(),
                            name: key.name.clone(),
                            result_tx,
                        };
                        FlightRole::Task(task, result_rx)
                    }
                    None => FlightRole::Leader(FlightLeader {
                        flights: self,
                        name: &key.name,
                        is_finished: false,
                    }),
                }
            }
        }
    }
}

impl FlightLeader<'_> {
    pub(super) fn finish(mut self, result: &AcquireResult) {
        self.is_finished = true;
        if let Some(result_tx) = self.remove() {
            result_tx.send_replace(Some(FlightResult {
                result: result.clone(),
                grant: None,
            }));
        }
    }

    fn remove(&self) -> Option<ResultSender> {
        self.flights.0.lock().remove(self.name)?.result_tx
    }
}

impl Drop for FlightLeader<'_> {
    fn drop(&mut self) {
        if !self.is_finished {
            self.remove();
        }
    }
}

impl FlightTask {
    /// Once all clients have disconnected.
    pub(super) async fn closed(&self) {
        self.result_tx.closed().await;
    }

    /// `grant`: the new lease of the result. It is released unless a request receives the result.
    pub(super) fn finish(self, result: AcquireResult, grant: Option<PendingGrant>) {
        // First, so that a request after the result starts a flight of its own.
        self.remove();
        self.result_tx.send_replace(Some(FlightResult {
            result,
            grant: grant.map(Arc::new),
        }));
    }

    /// Leaves the flight of a successor.
    fn remove(&self) {
        let mut flights = self.flights.0.lock();
        let is_current = |flight: &Flight| {
            let current = flight.result_tx.as_ref();
            current.is_some_and(|tx| Arc::ptr_eq(tx, &self.result_tx))
        };
        if flights.get(&self.name).is_some_and(is_current) {
            flights.remove(&self.name);
        }
    }
}

impl Drop for FlightTask {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Waits for the result of the first request; `None` if that ended without one.
pub(super) async fn wait_for_result(mut result_rx: ResultReceiver) -> Option<AcquireResult> {
    let FlightResult { result, grant } = result_rx.wait_for(Option::is_some).await.ok()?.clone()?;
    if let Some(grant) = grant {
        grant.receive();
    }
    Some(result)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn key(fingerprint: &str) -> IdempotencyKey {
        IdempotencyKey {
            name: KeyName {
                issuer: "issuer".into(),
                key: "key".into(),
            },
            fingerprint: fingerprint.into(),
        }
    }

    fn follower(role: FlightRole<'_>) -> ResultReceiver {
        match role {
            FlightRole::Follower(result_rx) => result_rx,
            _ => panic!("not a follower"),
        }
    }

    #[tokio::test]
    async fn duplicates_get_the_result_of_the_leader() {
        let (flights, key, other) = (Arc::new(Singleflight::default()), key("a"), key("b"));
        let FlightRole::Leader(leader) = flights.join(&key, false) else {
            panic!("not the leader");
        };
        let followers = [false, false].map(|waits| follower(flights.join(&key, waits)));
        assert!(matches!(
            flights.join(&other, false),
            FlightRole::FingerprintMismatch
        ));
        leader.finish(&Err(LeaseError::NotFound));
        for result_rx in followers {
            let result = wait_for_result(result_rx).await;
            assert!(matches!(result, Some(Err(LeaseError::NotFound))));
        }
        assert!(flights.0.lock().is_empty());
    }

    #[tokio::test]
    async fn duplicates_join_again_after_the_leader_has_disconnected() {
        let (flights, key) = (Arc::new(Singleflight::default()), key("a"));
        let role = flights.join(&key, false);
        let result_rx = follower(flights.join(&key, false));
        drop(role);
        assert_eq!(wait_for_result(result_rx).await, None);
        assert!(matches!(flights.join(&key, false), FlightRole::Leader(_)));
    }

    #[tokio::test]
    async fn duplicates_join_again_after_the_task_has_panicked() {
        let (flights, key) = (Arc::new(Singleflight::default()), key("a"));
        let FlightRole::Task(task, first) = flights.join(&key, true) else {
            panic!("not a task");
        };
        let duplicate = follower(flights.join(&key, true));
        let panicked = std::thread::spawn(move || {
            let _task = task;
            panic!("in the task of an acquire");
        });
        assert!(panicked.join().is_err());
        for result_rx in [first, duplicate] {
            assert_eq!(wait_for_result(result_rx).await, None);
        }
        assert!(flights.0.lock().is_empty());
        assert!(matches!(flights.join(&key, true), FlightRole::Task(..)));
    }

    #[tokio::test]
    async fn abandoned_task_is_not_joined_and_its_successor_stays() {
        let (flights, key) = (Arc::new(Singleflight::default()), key("a"));
        let FlightRole::Task(task, result_rx) = flights.join(&key, true) else {
            panic!("not a task");
        };
        drop(result_rx);
        let successor = flights.join(&key, true);
        assert!(matches!(successor, FlightRole::Task(..)));
        task.finish(Err(LeaseError::Unavailable), None);
        // It can still be joined.
        follower(flights.join(&key, true));
    }

    #[tokio::test]
    async fn grant_that_one_of_the_duplicates_receives_is_kept() {
        for received in [true, false] {
            let (flights, key) = (Arc::new(Singleflight::default()), key("a"));
            let FlightRole::Task(task, first) = flights.join(&key, true) else {
                panic!("not a task");
            };
            let second = follower(flights.join(&key, true));
            let releases = Arc::new(AtomicUsize::new(0));
            let counted = releases.clone();
            let grant = PendingGrant::new(move || {
                counted.fetch_add(1, Ordering::Relaxed);
            });
            task.finish(Err(LeaseError::NotFound), Some(grant));
            // Its client disconnects after the result was sent.
            drop(first);
            if received {
                assert!(wait_for_result(second).await.is_some());
            } else {
                drop(second);
            }
            assert_eq!(releases.load(Ordering::Relaxed), usize::from(!received));
        }
    }
}
