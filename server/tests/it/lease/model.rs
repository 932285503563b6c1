//! The same random commands against the model and a real store: every answer and every lease must be the same.

use std::collections::HashMap;
use std::time::Duration;

use ::lease::LeasePrincipal;
use ::lease::operation::{AcquireMode, AcquireOp, IdempotencyKey, KeyName, Operation, OperationResult};
use ::lease::store::memory::Model;
use ::lease::store::{Lane, LeaseRetention, Store};
use domain::lease::{LeaseId, Metadata, Revocation, Scope, StoreTime, Ttl};
use domain::names::{OwnerId, Resource};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use runtime::clock::Clock;

use super::lease_server::{LeaseStore, StoreKind};

#[derive(Debug, Clone)]
enum Act {
    Acquire {
        resource: u8,
        ttl: i64,
        key: Option<u8>,
        turn: u8,
    },
    Renew {
        lease: usize,
        ttl: Option<i64>,
    },
    Release {
        lease: usize,
        /// As the lease of a waiter whose client is gone.
        is_unclaimed: bool,
    },
    Revoke {
        lease: usize,
        delay_ms: i64,
    },
    Expire {
        resource: u8,
    },
    Leave {
        waiter: usize,
    },
}

/// A batch, and how far all times move back before it.
type Round = (Vec<Act>, i64);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let act = prop_oneof![
        5 => (0..3_u8, 1..20_i64, proptest::option::weighted(0.3, 0..3_u8), 0..4_u8)
            .prop_map(|(resource, ttl, key, turn)| Act::Acquire { resource, ttl, key, turn }),
        3 => (0..6_usize, proptest::option::of(1..20_i64)).prop_map(|(lease, ttl)| Act::Renew { lease, ttl }),
        2 => (0..6_usize, any::<bool>()).prop_map(|(lease, is_unclaimed)| Act::Release { lease, is_unclaimed }),
        1 => (0..6_usize, 0..5_000_i64).prop_map(|(lease, delay_ms)| Act::Revoke { lease, delay_ms }),
        1 => (0..3_u8).prop_map(|resource| Act::Expire { resource }),
        1 => (0..4_usize).prop_map(|waiter| Act::Leave { waiter }),
    ];
    let round = (
        proptest::collection::vec(act, 1..6),
        prop_oneof![2 => Just(0), 1 => 1..15_000_i64],
    );
    proptest::collection::vec(round, 1..=14)
}

struct Case {
    number: usize,
    ids: Vec<(LeaseId, Resource)>,
    ops: HashMap<LeaseId, AcquireOp>,
    /// Queued since an earlier round.
    queued: Option<LeaseId>,
}

impl Case {
    fn resource(&self, resource: u8) -> Resource {
        Resource::from(format!("case{}:{resource}", self.number).as_str())
    }

    fn operation(&mut self, act: &Act) -> Option<Operation> {
        let pick = |back: usize| self.ids.iter().rev().nth(back).cloned();
        Some(match act {
            Act::Acquire {
                resource,
                ttl,
                key,
                turn,
            } => Operation::Acquire(Box::new(self.acquire(*resource, *ttl, *key, *turn))),
            Act::Renew { lease, ttl } => Operation::Renew {
                lease: pick(*lease)?.0,
                ttl: ttl.and_then(|seconds| Ttl::parse(seconds, 3_600).ok()),
                lifetime_ms_max: 40_000,
                principal: LeasePrincipal::new("t"),
                scope: Scope::everything(),
            },
            Act::Release { lease, is_unclaimed } => {
                let lease = pick(*lease)?.0;
                let key = self.ops.get(&lease).and_then(|op| op.key.as_ref());
                Operation::Release {
                    lease,
                    principal: LeasePrincipal::new("t"),
                    scope: Scope::everything(),
                    unbind: key.filter(|_| *is_unclaimed).map(|key| key.name.clone()),
                }
            }
            Act::Revoke { lease, delay_ms } => Operation::Revoke {
                lease: pick(*lease)?.0,
                revocation: Revocation {
                    by: "dana".into(),
                    reason: "it's \"stuck\"".into(),
                    audit_id: "a\\1".into(),
                },
                delay_ms: *delay_ms,
            },
            Act::Expire { resource } => Operation::Expire {
                resource: self.resource(*resource),
            },
            Act::Leave { waiter } => {
                let (waiter, resource) = pick(*waiter)?;
                Operation::Leave { resource, waiter }
            }
        })
    }

    fn acquire(&mut self, resource: u8, ttl: i64, key: Option<u8>, turn: u8) -> AcquireOp {
        // Every fourth attempt is made for an owner that is queued already.
        if turn == 3
            && let Some(op) = self.queued.take().and_then(|id| self.ops.get(&id))
        {
            return AcquireOp {
                mode: AcquireMode::Waiting,
                ..op.clone()
            };
        }
        let id = LeaseId::from_parts(
            i64::try_from(self.number * 1_000 + self.ids.len()).unwrap() + 1_700_000_000_000,
            [9; 10],
        );
        let resource = self.resource(resource);
        let metadata = Metadata::new([("k\"\\'".to_owned(), "v\u{e9}\n".to_owned())].into(), 20).unwrap();
        let op = AcquireOp {
            resource: resource.clone(),
            id,
            owner: OwnerId::new(format!("o'{}", self.ids.len() % 3)),
            issuer: "t".into(),
            ttl: Ttl::parse(ttl, 3_600).unwrap(),
            metadata: if ttl % 2 == 0 {
                metadata
            } else {
                Metadata::default()
            },
            key: key.map(|key| IdempotencyKey {
                name: KeyName {
                    issuer: "t".into(),
                    key: format!("case{}-{key}", self.number).into(),
                },
                fingerprint: format!("{resource:?} {}", ttl % 2).into(),
            }),
            mode: if turn == 1 {
                AcquireMode::OrWait
            } else {
                AcquireMode::Once
            },
        };
        self.ids.push((id, resource));
        self.ops.insert(id, op.clone());
        op
    }
}

/// Held leases only: an ended one never changes, and a store may rely on it.
fn shift(model: &mut Model, ms: i64) {
    let back = |time: &mut StoreTime| *time = time.plus(-ms);
    let lease = |lease: &mut domain::lease::Lease| {
        if lease.ending.is_some() {
            return;
        }
        back(&mut lease.acquired_at);
        back(&mut lease.expires_at);
        back(&mut lease.renewed_at);
    };
    for held in model.resources.values_mut() {
        held.state.lease.iter_mut().for_each(lease);
        held.state.locked_until.iter_mut().for_each(back);
        back(&mut held.state.touched_at);
    }
    model.leases.values_mut().for_each(|(_, it)| lease(it));
}

/// Longer than any case.
pub(super) const RETENTION: LeaseRetention = LeaseRetention {
    released: Duration::from_secs(86_400),
    ended: Duration::from_secs(86_400),
    lifetime_max: Duration::from_secs(86_400),
};

async fn run_case(
    lease_store: &LeaseStore,
    (store, clock): (&dyn Store, &Clock),
    number: usize,
    rounds: &[Round],
) {
    let mut model = Model::default();
    let mut case = Case {
        number,
        ids: Vec::new(),
        ops: HashMap::new(),
        queued: None,
    };
    store.run_maintenance(&RETENTION).await.unwrap();
    for (place, (acts, ms)) in rounds.iter().enumerate() {
        if *ms > 0 && lease_store.etcd.is_some() {
            // The store's time follows our clock.
            clock.advance(Duration::from_millis(ms.unsigned_abs()));
        } else if *ms > 0 {
            shift(&mut model, *ms);
            lease_store.sql(&format!(
                "UPDATE leases SET acquired_at = acquired_at - {ms}, expires_at = expires_at - {ms},
                    renewed_at = renewed_at - {ms} WHERE ended_at IS NULL AND resource LIKE 'case{number}:%';
                 UPDATE resource_tokens SET locked_until = locked_until - {ms} WHERE resource LIKE 'case{number}:%'"
            ))
            .await;
        }
        let operations: Vec<Operation> = acts.iter().filter_map(|act| case.operation(act)).collect();
        if operations.is_empty() {
            continue;
        }
        // Waiters of a replica without one leave the queue.
        store.send_heartbeat().await.unwrap();
        let applied = store
            .apply(Lane::Main, &operations)
            .await
            .unwrap_or_else(|error| panic!("case {number}, round {place}: {error}\n{rounds:#?}"));
        let ran = model.apply(&operations, applied.now, store.replica()).unwrap();
        assert_eq!(
            applied.done, ran.done,
            "case {number}, round {place} of {rounds:#?}"
        );
        for (operation, done) in operations.iter().zip(&ran.done) {
            if let (Operation::Acquire(op), OperationResult::Queued { .. }) = (operation, done) {
                case.queued = Some(op.id);
            }
        }
    }
    let ids: Vec<LeaseId> = case.ids.iter().map(|(id, _)| *id).collect();
    let mut kept = store.leases(&ids).await.unwrap().value;
    kept.sort_by_key(|(_, lease)| lease.id);
    let mut expected: Vec<_> = model.leases.values().cloned().collect();
    expected.sort_by_key(|(_, lease)| lease.id);
    assert_eq!(kept, expected, "case {number}: {rounds:#?}");
}

async fn run_cases(kind: StoreKind, cases: usize) {
    let lease_store = LeaseStore::new(kind).await;
    let clock = Clock::start();
    let store = lease_store.open(&clock).await;
    // One seed, one run: a failure names its case, and comes again.
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = rounds();
    for number in 0..cases {
        let rounds = strategy.new_tree(&mut runner).unwrap().current();
        run_case(&lease_store, (store.as_ref(), &clock), number, &rounds).await;
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_equals_the_model() {
    // Batches of random operations with jumps in time; traps 2, 20, 28, 30 among what a difference would show.
    run_cases(StoreKind::Sqlite, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_equals_the_model() {
    // As on SQLite.
    run_cases(StoreKind::Postgres, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn etcd_equals_the_model() {
    // As on SQLite, with three members.
    run_cases(StoreKind::Etcd, 50).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: part of `make prove`"]
async fn sqlite_equals_the_model_a_thousand_times() {
    // As above, 1,000 cases.
    run_cases(StoreKind::Sqlite, 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: part of `make prove`"]
async fn postgres_equals_the_model_a_thousand_times() {
    // As above, 1,000 cases.
    run_cases(StoreKind::Postgres, 1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "long: part of `make prove`"]
async fn etcd_equals_the_model_a_thousand_times() {
    // As above, 1,000 cases.
    run_cases(StoreKind::Etcd, 1_000).await;
}
