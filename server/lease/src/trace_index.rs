//! Trace ids of grants and releases, kept for the history writer: bounded, and empty without tracing.

use std::collections::HashMap;

use domain::lease::LeaseId;
use domain::names::Resource;
use opentelemetry::trace::SpanContext;
use parking_lot::{Mutex, MutexGuard};

use super::operation::{Operation, OperationResult};
use runtime::telemetry::trace;

/// Entries per generation, of two: the older one is dropped when the newer one is full.
const TRACES_MAX: usize = 20_000;

/// Traces of a batch, by index of the operation.
#[derive(Default)]
pub(super) struct Traces(Vec<(usize, SpanContext)>);

impl Traces {
    /// Allocates nothing if no request is traced.
    pub(super) fn from_jobs<'a>(jobs: impl Iterator<Item = Option<&'a SpanContext>>) -> Self {
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

/// The grant or the end of a lease, by its token.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    resource: Resource,
    token: u64,
    is_end: bool,
}

#[derive(Debug, Default)]
struct Generation {
    traces: HashMap<Key, String>,
    /// A release names only the lease.
    lease_resources: HashMap<LeaseId, Resource>,
}

#[derive(Debug, Default)]
pub struct Traced(Mutex<[Generation; 2]>);

impl Traced {
    pub(super) fn record(&self, operations: &[Operation], results: &[OperationResult], traces: &Traces) {
        for (place, trace) in &traces.0 {
            match (operations.get(*place), results.get(*place)) {
                (
                    Some(Operation::Acquire(op)),
                    Some(OperationResult::Acquired {
                        lease,
                        replayed: false,
                        ..
                    }),
                ) => {
                    self.lock()[0]
                        .lease_resources
                        .insert(lease.id, op.resource.clone());
                    self.put(&op.resource, lease.token.number(), false, trace);
                }
                (_, Some(OperationResult::Released(lease))) => {
                    let resource = self
                        .lock()
                        .iter()
                        .find_map(|generation| generation.lease_resources.get(&lease.id).cloned());
                    if let Some(resource) = resource {
                        self.put(&resource, lease.token.number(), true, trace);
                    }
                }
                _ => {}
            }
        }
    }

    /// Records the trace of a grant or an end.
    fn put(&self, resource: &Resource, token: u64, is_end: bool, trace: &SpanContext) {
        let mut generations = self.lock();
        if generations[0].traces.len() >= TRACES_MAX {
            let [newer, older] = &mut *generations;
            *older = std::mem::take(newer);
        }
        let resource = resource.clone();
        let key = Key {
            resource,
            token,
            is_end,
        };
        generations[0].traces.insert(key, trace::id(trace));
    }

    /// Records the current trace as that of a revocation.
    pub fn revoked(&self, resource: &Resource, token: u64) {
        if let Some(trace) = trace::current_span_context() {
            self.put(resource, token, true, &trace);
        }
    }

    /// The trace id of a grant or an end.
    pub fn find(&self, resource: &Resource, token: u64, is_end: bool) -> Option<String> {
        if !trace::is_on() {
            return None;
        }
        let resource = resource.clone();
        let key = Key {
            resource,
            token,
            is_end,
        };
        self.lock()
            .iter()
            .find_map(|generation| generation.traces.get(&key).cloned())
    }

    fn lock(&self) -> MutexGuard<'_, [Generation; 2]> {
        self.0.lock()
    }
}
