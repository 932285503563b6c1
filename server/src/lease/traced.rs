//! Which trace did what to a lease, until history has written it down: bounded, and empty without traces.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use domain::lease::LeaseId;
use domain::names::Resource;
use opentelemetry::trace::SpanContext;

use super::operation::{Done, Operation};
use crate::telemetry::trace;

/// Of each of two generations: the older one goes when the newer is full.
const KEPT_MAX: usize = 20_000;

/// The traces of a batch, by place.
#[derive(Default)]
pub(super) struct Traces(Vec<(usize, SpanContext)>);

impl Traces {
    /// Allocates nothing when there is none.
    pub(super) fn of<'a>(jobs: impl Iterator<Item = Option<&'a SpanContext>>) -> Self {
        if !trace::is_on() {
            return Self::default();
        }
        let traced = jobs.enumerate();
        Self(
            traced
                .filter_map(|(place, trace)| Some((place, trace?.clone())))
                .collect(),
        )
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &SpanContext> {
        self.0.iter().map(|(_, trace)| trace)
    }
}

/// A holding by its token, and whether this is its beginning or its end.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    resource: Resource,
    token: u64,
    is_end: bool,
}

#[derive(Debug, Default)]
struct Generation {
    traces: HashMap<Key, String>,
    /// Whoever gives a lease back names the lease alone.
    homes: HashMap<LeaseId, Resource>,
}

#[derive(Debug, Default)]
pub struct Traced(Mutex<[Generation; 2]>);

impl Traced {
    pub(super) fn note(&self, operations: &[Operation], done: &[Done], traces: &Traces) {
        for (place, trace) in &traces.0 {
            match (operations.get(*place), done.get(*place)) {
                (
                    Some(Operation::Acquire(op)),
                    Some(Done::Acquired {
                        lease,
                        replayed: false,
                        ..
                    }),
                ) => {
                    self.lock()[0].homes.insert(lease.id, op.resource.clone());
                    self.keep(&op.resource, lease.token.number(), false, trace);
                }
                (_, Some(Done::Released(lease))) => {
                    let home = self
                        .lock()
                        .iter()
                        .find_map(|some| some.homes.get(&lease.id).cloned());
                    if let Some(resource) = home {
                        self.keep(&resource, lease.token.number(), true, trace);
                    }
                }
                _ => {}
            }
        }
    }

    /// A holding that this trace began, or ended.
    fn keep(&self, resource: &Resource, token: u64, is_end: bool, trace: &SpanContext) {
        let mut kept = self.lock();
        if kept[0].traces.len() >= KEPT_MAX {
            let [newer, older] = &mut *kept;
            *older = std::mem::take(newer);
        }
        let resource = resource.clone();
        let key = Key {
            resource,
            token,
            is_end,
        };
        kept[0].traces.insert(key, trace::id(trace));
    }

    /// A lease was revoked in the trace that the caller is in.
    pub fn revoked(&self, resource: &Resource, token: u64) {
        if let Some(trace) = trace::here() {
            self.keep(resource, token, true, &trace);
        }
    }

    /// The trace that began this holding, or ended it.
    pub fn of(&self, resource: &Resource, token: u64, is_end: bool) -> Option<String> {
        if !trace::is_on() {
            return None;
        }
        let resource = resource.clone();
        let key = Key {
            resource,
            token,
            is_end,
        };
        self.lock().iter().find_map(|some| some.traces.get(&key).cloned())
    }

    fn lock(&self) -> MutexGuard<'_, [Generation; 2]> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
