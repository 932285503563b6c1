//! Acquire: at once, or in line; with an idempotency key or without.

use std::sync::Arc;
use std::time::Duration;

use domain::history::template;
use domain::lease::{Lease, Metadata, Refusal, Ttl};
use domain::names::{OwnerId, Resource};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::caller::Caller;
use super::chance;
use super::core::{Answer, Core};
use super::error::LeaseError;
use super::flights::{self, Seat};
use super::operation::{AcquireOp, Done, Key, KeyName, Operation, Turn};
use super::store::Lane;
use super::{LeaseService, PATIENCE, events, waiting};
use crate::tasks;
use crate::telemetry::meters;
use crate::telemetry::meters::Of;

/// Nobody holds it but it is a waiter's turn: the waiter takes it, or is found gone, within this.
const TURN_TRIES: usize = 40;
const TURN_GAP: Duration = Duration::from_millis(10);

#[derive(Debug, Clone)]
pub struct AcquireRequest {
    pub resource: Resource,
    pub owner: OwnerId,
    pub ttl: Ttl,
    pub wait: Duration,
    pub metadata: Metadata,
    pub idempotency_key: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Acquired {
    Granted { lease: Lease, remaining_ms: i64 },
    Refused { refusal: Refusal, waiters: u32 },
}

impl LeaseService {
    /// Takes the lock of a resource, or says who has it.
    ///
    /// # Errors
    /// See [`LeaseError`]; `Unavailable` leaves open whether it was granted: the same key finds out.
    pub async fn acquire(&self, caller: &Caller, request: AcquireRequest) -> Result<Acquired, LeaseError> {
        let resource = request.resource.clone();
        let answer = self.try_acquire(caller, request).await;
        match &answer {
            Ok(Acquired::Granted { lease, .. }) => events::acquired(&resource, lease),
            Ok(Acquired::Refused { .. }) => {}
            Err(error) => unanswered(&resource, error),
        }
        answer
    }

    async fn try_acquire(&self, caller: &Caller, request: AcquireRequest) -> Result<Acquired, LeaseError> {
        caller.may_acquire(&request.resource)?;
        if self.core.stop.is_cancelled() {
            return Err(LeaseError::ShuttingDown);
        }
        let wall = self.core.clock.now().wall.timestamp_millis();
        let id = chance::lease_id(wall);
        let key = request.idempotency_key.as_ref().map(|key| Key {
            name: KeyName {
                issuer: caller.principal.id.clone(),
                key: key.clone(),
            },
            fingerprint: fingerprint(&request),
        });
        let op = Box::new(AcquireOp {
            resource: request.resource,
            id,
            owner: request.owner,
            issuer: caller.principal.id.clone(),
            ttl: request.ttl,
            metadata: request.metadata,
            key,
            turn: Turn::Once,
        });
        match op.key.clone() {
            None => run(self.core.clone(), op, request.wait).await,
            Some(key) => Box::pin(self.fly(key, op, request.wait)).await,
        }
    }

    async fn fly(&self, key: Key, op: Box<AcquireOp>, wait: Duration) -> Result<Acquired, LeaseError> {
        let (landing, passenger) = match self.flights.board(&key) {
            Seat::OtherBody => return Err(LeaseError::KeyReused),
            Seat::Passenger(passenger) => return flights::landed(passenger).await,
            Seat::Pilot(landing, passenger) => (landing, passenger),
        };
        let (core, all) = (self.core.clone(), self.flights.clone());
        tasks::spawn(
            "keyed acquire",
            CancellationToken::new(),
            async move {
                let result = tokio::select! {
                    // All who asked have hung up.
                    () = landing.closed() => Err(LeaseError::Unavailable),
                    result = run(core, op, wait) => result,
                };
                all.land(&key, &landing, result);
            }
            .in_current_span(),
        );
        flights::landed(passenger).await
    }
}

/// An attempt that the store does not tell of.
fn unanswered(resource: &Resource, error: &LeaseError) {
    let outcome = match error {
        LeaseError::OutOfScope | LeaseError::Reserved | LeaseError::KeyReused | LeaseError::Invalid(_) => {
            "denied"
        }
        _ => "error",
    };
    let template = Arc::from(template::template(resource.as_bytes()));
    meters().acquired(&Of::builtin(), &template, outcome);
}

/// The same request by meaning, whatever the order of its members.
fn fingerprint(request: &AcquireRequest) -> Arc<str> {
    use std::fmt::Write as _;
    let mut text = format!(
        "{}\n{}\n{}",
        request.resource.text(),
        request.owner,
        request.ttl.seconds()
    );
    let _ = write!(text, "\n{}", request.wait.as_secs());
    for (name, value) in request.metadata.iter() {
        let _ = write!(text, "\n{name:?}={value:?}");
    }
    text.into()
}

async fn run(core: Arc<Core>, op: Box<AcquireOp>, wait: Duration) -> Result<Acquired, LeaseError> {
    let answer = if wait.is_zero() {
        at_once(&core, &op).await?
    } else {
        Box::pin(in_line(&core, op, wait)).await?
    };
    read(&core, answer)
}

async fn at_once(core: &Core, op: &AcquireOp) -> Result<Answer, LeaseError> {
    let mut tries = 0;
    loop {
        let asked = core.ask(Lane::Main, Operation::Acquire(Box::new(op.clone())));
        let answer = tokio::time::timeout(PATIENCE, asked)
            .await
            .unwrap_or(Err(LeaseError::Unavailable));
        match answer {
            Ok(Answer {
                done: Done::Refused {
                    turn_of_others: true, ..
                },
                ..
            }) if tries < TURN_TRIES => {
                tries += 1;
                tokio::time::sleep(TURN_GAP).await;
            }
            Err(LeaseError::Unavailable) if op.key.is_none() => {
                // Not known to be granted, and nobody will ask: it must not stay held.
                core.give_back(op, op.id);
                return Err(LeaseError::Unavailable);
            }
            answer => return answer,
        }
    }
}

async fn in_line(core: &Arc<Core>, op: Box<AcquireOp>, wait: Duration) -> Result<Answer, LeaseError> {
    let (reply, answer) = oneshot::channel();
    let until = core
        .clock
        .tick()
        .plus(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
    let work = waiting::wait(core.clone(), op, reply, until);
    tasks::spawn("waiter", CancellationToken::new(), work.in_current_span());
    let answer = tokio::time::timeout(wait + PATIENCE, answer).await;
    match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(LeaseError::ShuttingDown),
        Err(_) => Err(LeaseError::Unavailable),
    }
}

fn read(core: &Core, answer: Answer) -> Result<Acquired, LeaseError> {
    let age_ms = core.clock.tick().since(answer.read_at);
    match answer.done {
        Done::Acquired { lease, .. } => {
            let remaining_ms = lease.remaining_ms(answer.now) - age_ms;
            if remaining_ms <= 0 {
                // It ran out on the way here: nobody may be told that it holds it.
                return Err(LeaseError::Unavailable);
            }
            Ok(Acquired::Granted { lease, remaining_ms })
        }
        Done::Refused { refusal, waiters, .. } => Ok(Acquired::Refused { refusal, waiters }),
        Done::Lost(_, ending) => Err(LeaseError::Lost(ending.how)),
        Done::KeyReused => Err(LeaseError::KeyReused),
        _ => Err(LeaseError::Broken),
    }
}
