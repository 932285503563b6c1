//! The same random calls against the model, a single store, and the service on two shards: every answer must be the same.
//! No lease expires meanwhile: clocks are the subject of `model`.

use std::collections::HashMap;
use std::time::Duration;

use ::lease::operation::{AcquireMode, AcquireOp, IdempotencyKey, KeyName, Operation, OperationResult};
use ::lease::store::memory::Model;
use ::lease::{AcquireRequest, Acquired, Ended, LeaseCaller, LeaseError, LeasePrincipal, LeaseService};
use domain::lease::{EndCause, LeaseId, Metadata, Revocation, Scope, StoreTime, Ttl};
use domain::names::{OwnerId, Resource};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use super::lease_server::{LeaseStore, StoreKind};

const NOW: StoreTime = StoreTime::from_ms(1_000_000);

#[derive(Debug, Clone)]
enum Act {
    Acquire { resource: u8, key: Option<u8> },
    Renew { lease: usize },
    Release { lease: usize },
    Revoke { lease: usize },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        5 => (0..6_u8, proptest::option::weighted(0.5, 0..6_u8))
            .prop_map(|(resource, key)| Act::Acquire { resource, key }),
        2 => (0..5_usize).prop_map(|lease| Act::Renew { lease }),
        3 => (0..5_usize).prop_map(|lease| Act::Release { lease }),
        1 => (0..5_usize).prop_map(|lease| Act::Revoke { lease }),
    ];
    proptest::collection::vec(act, 1..=20)
}

/// What a caller can tell of an answer, with tokens instead of ids.
#[derive(Debug, PartialEq)]
enum Seen {
    Granted(u64),
    Refused,
    KeyReused,
    Renewed(u64),
    Ended(u64),
    Lost(&'static str),
}

struct Case {
    number: usize,
    model: Model,
    /// Ids of the service and of the model, by grant.
    leases: Vec<(LeaseId, LeaseId)>,
    ids: u32,
}

impl Case {
    fn resource(&self, resource: u8) -> Resource {
        Resource::from(format!("case{}:{resource}", self.number).as_str())
    }

    fn modelled(&mut self, operation: Operation) -> Seen {
        let ran = self.model.apply(&[operation], NOW, &"replica".into()).unwrap();
        match ran.done.into_iter().next().unwrap() {
            OperationResult::Acquired { lease, .. } => Seen::Granted(lease.token.number()),
            OperationResult::Refused { .. } => Seen::Refused,
            OperationResult::KeyReused => Seen::KeyReused,
            OperationResult::Renewed(lease) => Seen::Renewed(lease.token.number()),
            OperationResult::Released(lease) | OperationResult::Revoked(lease) => {
                Seen::Ended(lease.token.number())
            }
            OperationResult::Lost(_, ending) => Seen::Lost(ending.how.as_str()),
            other => panic!("{other:?}"),
        }
    }

    async fn acquire(&mut self, service: &LeaseService, resource: u8, key: Option<u8>) -> (Seen, Seen) {
        let resource = self.resource(resource);
        let key = key.map(|key| format!("case{}-{key}", self.number));
        let ttl = Ttl::parse(600, 3_600).unwrap();
        let request = AcquireRequest {
            resource: resource.clone(),
            owner: OwnerId::new("o"),
            ttl,
            wait: Duration::ZERO,
            metadata: Metadata::default(),
            idempotency_key: key.as_deref().map(Into::into),
        };
        self.ids += 1;
        let op = AcquireOp {
            id: LeaseId::from_parts(i64::from(self.ids), [9; 10]),
            owner: OwnerId::new("o"),
            issuer: "".into(),
            ttl,
            metadata: Metadata::default(),
            key: key.map(|key| IdempotencyKey {
                name: KeyName {
                    issuer: "".into(),
                    key: key.into(),
                },
                fingerprint: resource.text().into(),
            }),
            resource,
            mode: AcquireMode::Once,
        };
        let model_id = op.id;
        let expected = self.modelled(Operation::Acquire(Box::new(op)));
        let answer = service.acquire(&LeaseCaller::open(), request).await;
        let seen = match answer {
            Ok(Acquired::Granted { lease, .. }) => {
                if self.leases.iter().all(|(known, _)| *known != lease.id) {
                    self.leases.push((lease.id, model_id));
                }
                Seen::Granted(lease.token.number())
            }
            Ok(Acquired::Refused { .. }) => Seen::Refused,
            Err(LeaseError::KeyReused) => Seen::KeyReused,
            Err(LeaseError::Lost(how)) => Seen::Lost(how.as_str()),
            Err(error) => panic!("{error}"),
        };
        (seen, expected)
    }

    async fn run(&mut self, service: &LeaseService, act: &Act) -> Option<(Seen, Seen)> {
        let pick = |case: &Self, back: usize| case.leases.iter().rev().nth(back).copied();
        let (principal, scope) = (LeasePrincipal::new(""), Scope::everything());
        match act {
            Act::Acquire { resource, key } => Some(self.acquire(service, *resource, *key).await),
            Act::Renew { lease } => {
                let (id, model_id) = pick(self, *lease)?;
                let renew = Operation::Renew {
                    lease: model_id,
                    ttl: None,
                    lifetime_ms_max: 86_400_000,
                    principal,
                    scope,
                };
                let seen = match service.renew(&LeaseCaller::open(), id, None).await {
                    Ok(renewed) => Seen::Renewed(renewed.lease.token.number()),
                    Err(LeaseError::Lost(how)) => Seen::Lost(how.as_str()),
                    Err(error) => panic!("{error}"),
                };
                Some((seen, self.modelled(renew)))
            }
            Act::Release { lease } => {
                let (id, model_id) = pick(self, *lease)?;
                let release = Operation::Release {
                    lease: model_id,
                    principal,
                    scope,
                    unbind: None,
                };
                let answer = service.release(&LeaseCaller::open(), id).await;
                Some((ended(answer), self.modelled(release)))
            }
            Act::Revoke { lease } => {
                let (id, model_id) = pick(self, *lease)?;
                let revocation = Revocation {
                    by: "dana".into(),
                    reason: "stuck".into(),
                    audit_id: "1".into(),
                };
                let answer = service.revoke(id, revocation.clone(), Duration::ZERO).await;
                let revoke = Operation::Revoke {
                    lease: model_id,
                    revocation,
                    delay_ms: 0,
                };
                Some((ended(answer), self.modelled(revoke)))
            }
        }
    }

    /// Names and tokens held, in the order of the list.
    fn held(&self) -> Vec<(String, u64)> {
        let leases = self.model.resources.iter().filter_map(|(name, held)| {
            let lease = held.state.lease.as_ref().filter(|lease| lease.ending.is_none())?;
            Some((name.text(), lease.token.number()))
        });
        let mut held: Vec<_> = leases.collect();
        held.sort();
        held
    }
}

fn ended(answer: Result<Ended, LeaseError>) -> Seen {
    match answer {
        Ok(Ended::Now(lease)) => Seen::Ended(lease.token.number()),
        Ok(Ended::Before(how)) => Seen::Lost(EndCause::as_str(&how)),
        Err(error) => panic!("{error}"),
    }
}

async fn run_cases(kind: StoreKind, cases: usize) {
    let store = LeaseStore::new(kind).await;
    let server = store.serve().await;
    let service = &server.service;
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = acts();
    let mut answers: HashMap<&'static str, u32> = HashMap::new();
    for number in 0..cases {
        let acts = strategy.new_tree(&mut runner).unwrap().current();
        let mut case = Case {
            number,
            model: Model::default(),
            leases: Vec::new(),
            ids: 0,
        };
        for (place, act) in acts.iter().enumerate() {
            if let Some((seen, expected)) = case.run(service, act).await {
                assert_eq!(seen, expected, "case {number}, call {place} of {acts:#?}");
                let kind = match seen {
                    Seen::KeyReused => "key reused",
                    Seen::Lost(_) => "lost",
                    _ => "other",
                };
                *answers.entry(kind).or_default() += 1;
            }
        }
        let prefix = format!("case{number}:");
        let page = service.leases(&LeaseCaller::open(), &prefix, None, 100).await;
        let listed = page.unwrap().leases.into_iter();
        let listed: Vec<_> = listed
            .map(|seen| (seen.resource.text(), seen.lease.token.number()))
            .collect();
        assert_eq!(listed, case.held(), "case {number}: {acts:#?}");
    }
    assert!(answers["key reused"] > 0 && answers["lost"] > 0, "{answers:?}");
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_store_equals_the_model_by_its_service() {
    run_cases(StoreKind::Sqlite, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_postgres_shards_equal_the_model() {
    run_cases(StoreKind::PostgresShards, 100).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_etcd_shards_equal_the_model() {
    run_cases(StoreKind::EtcdShards, 50).await;
}
