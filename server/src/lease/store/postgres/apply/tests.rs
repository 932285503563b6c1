//! What comes between looking and writing, by another replica on the same Postgres: nothing of ours is written then.

use domain::lease::{LeaseId, Metadata, Revocation, Scope, Ttl};
use domain::names::{OwnerId, Resource};

use super::*;
use crate::clock::Clock;
use crate::lease::LeasePrincipal;
use crate::lease::operation::{AcquireOp, Done, Key, KeyName, Turn};
use crate::throwaway::{Postgres, PostgresOptions, Throwaway};

/// In milliseconds: what is met is met because of a row, however slow the machine is.
const PATIENT: i64 = 60_000;

struct Replicas {
    ours: PostgresStore,
    theirs: PostgresStore,
    server: Postgres,
}

impl Replicas {
    async fn start() -> Self {
        let options = PostgresOptions {
            fast: true,
            ..PostgresOptions::default()
        };
        let server = Throwaway::postgres(options).await.unwrap();
        let url = server.superuser_url();
        Self {
            ours: PostgresStore::open(&url, Clock::start()).await.unwrap(),
            theirs: PostgresStore::open(&url, Clock::start()).await.unwrap(),
            server,
        }
    }

    /// Looks, lets `between` happen, and writes what was decided before it.
    async fn meet(&self, ours: &Operation, between: impl Future<Output = ()>) -> Result<Applied, StoreError> {
        Box::pin(self.meet_within(PATIENT, ours, Box::pin(between))).await
    }

    async fn meet_within(
        &self,
        patience_ms: i64,
        ours: &Operation,
        between: impl Future<Output = ()>,
    ) -> Result<Applied, StoreError> {
        let mut connection = self.ours.connect().await.unwrap();
        let operations = std::slice::from_ref(ours);
        let wanted = Wanted::of(&Asked::of(operations));
        let looked = self.ours.look(&mut connection, &wanted).await?;
        let decided = Decided::of(looked, operations, &self.ours.replica)?;
        assert!(!decided.ran.changes.is_empty(), "{ours:?} has something to write");
        between.await;
        let settled = self
            .ours
            .settle(&mut connection, decided, Some(patience_ms))
            .await;
        settled.map(|(applied, _)| applied)
    }

    async fn they(&self, operation: &Operation) -> Done {
        one(&self.theirs, operation).await
    }

    async fn sql(&self, sql: &'static str) {
        use sqlx::Connection as _;
        let mut connection = PgConnection::connect(&self.server.superuser_url()).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
}

async fn one(store: &PostgresStore, operation: &Operation) -> Done {
    let mut applied = store
        .write(Lane::Main, std::slice::from_ref(operation))
        .await
        .unwrap();
    applied.done.remove(0)
}

fn lease(number: u8) -> LeaseId {
    LeaseId::from_parts(1_700_000_000_000, [number; 10])
}

fn acquire(resource: &str, number: u8, turn: Turn) -> Operation {
    Operation::Acquire(Box::new(AcquireOp {
        resource: Resource::from(resource),
        id: lease(number),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        ttl: Ttl::parse(30, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        turn,
    }))
}

fn renew(number: u8) -> Operation {
    Operation::Renew {
        lease: lease(number),
        ttl: None,
        lifetime_ms_max: 3_600_000,
        principal: LeasePrincipal::new("t"),
        scope: Scope::everything(),
    }
}

fn release(number: u8) -> Operation {
    Operation::Release {
        lease: lease(number),
        principal: LeasePrincipal::new("t"),
        scope: Scope::everything(),
        unbind: None,
    }
}

fn revoke(number: u8, delay_ms: i64) -> Operation {
    Operation::Revoke {
        lease: lease(number),
        revocation: Revocation {
            by: "dana".into(),
            reason: "stuck".into(),
            audit_id: "a1".into(),
        },
        delay_ms,
    }
}

/// Resource, what was done before, what we decided, what they do before we write it.
fn meetings() -> Vec<(&'static str, Vec<Operation>, Operation, Operation)> {
    let once = |resource, number| acquire(resource, number, Turn::Once);
    let leave = |resource: &str, number| Operation::Leave {
        resource: Resource::from(resource),
        waiter: lease(number),
    };
    vec![
        (
            "both make it",
            vec![],
            once("both make it", 1),
            once("both make it", 2),
        ),
        (
            "both take it",
            vec![once("both take it", 3), release(3)],
            once("both take it", 4),
            once("both take it", 5),
        ),
        (
            "it is renewed",
            vec![once("it is renewed", 6)],
            release(6),
            renew(6),
        ),
        (
            "it is released",
            vec![once("it is released", 7)],
            renew(7),
            release(7),
        ),
        (
            "it is revoked",
            vec![once("it is revoked", 8)],
            renew(8),
            revoke(8, 0),
        ),
        (
            "somebody joins",
            vec![once("somebody joins", 9)],
            release(9),
            acquire("somebody joins", 10, Turn::OrWait),
        ),
        (
            "somebody leaves",
            vec![
                once("somebody leaves", 11),
                acquire("somebody leaves", 12, Turn::OrWait),
            ],
            release(11),
            leave("somebody leaves", 12),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_replica_does_between_looking_and_writing_is_met() {
    let replicas = Replicas::start().await;
    for (name, before, ours, theirs) in meetings() {
        for operation in &before {
            one(&replicas.ours, operation).await;
        }
        let met = replicas
            .meet(&ours, async {
                replicas.they(&theirs).await;
            })
            .await;
        assert!(matches!(met, Err(StoreError::Conflict)), "{name}: {met:?}");
        // Behind locks it is done, whatever has become of it.
        one(&replicas.ours, &ours).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_meets_is_written() {
    // The negative control: the very same batches, and nothing between.
    let replicas = Replicas::start().await;
    for (name, before, ours, _) in meetings() {
        for operation in &before {
            one(&replicas.ours, operation).await;
        }
        let met = replicas.meet(&ours, async {}).await;
        assert!(met.is_ok(), "{name}: {met:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_remembered_is_held_against_the_rows() {
    // All of it is remembered by us when they come; what we are told afterwards is what they left.
    let replicas = Replicas::start().await;
    let ours = &replicas.ours;
    let once = |resource: &str, number| acquire(resource, number, Turn::Once);
    for operation in [
        once("taken", 1),
        release(1),
        once("ended", 2),
        once("passed on", 3),
    ] {
        one(ours, &operation).await;
    }
    for operation in [once("taken", 4), revoke(2, 0), release(3), once("passed on", 5)] {
        replicas.they(&operation).await;
    }
    let refused = one(ours, &once("taken", 6)).await;
    assert!(matches!(refused, Done::Refused { .. }), "{refused:?}");
    let lost = one(ours, &renew(2)).await;
    assert!(matches!(lost, Done::Lost(..)), "{lost:?}");
    let lost = one(ours, &release(3)).await;
    assert!(matches!(lost, Done::Lost(..)), "{lost:?}");
    // Freed by them, with one token more than we remember.
    replicas.they(&release(4)).await;
    let Done::Acquired { lease, .. } = one(ours, &once("taken", 7)).await else {
        panic!("it is free");
    };
    assert_eq!(lease.token.number(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moment_that_is_over_is_not_decided_at() {
    // A process that was paused, a row that somebody else has locked, a floor that was raised: none is waited for.
    let replicas = Replicas::start().await;
    let ours = acquire("r", 1, Turn::Once);
    let paused = replicas.meet_within(STEP_MS, &ours, async {
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    });
    assert!(matches!(paused.await, Err(StoreError::Conflict)));
    one(&replicas.ours, &acquire("r", 2, Turn::Once)).await;
    let mut blocker = replicas.theirs.connect().await.unwrap();
    let ours = release(2);
    let locked = replicas.meet(&ours, async {
        sqlx::raw_sql("BEGIN; SELECT FROM resource_tokens WHERE resource = 'r' FOR UPDATE")
            .execute(&mut blocker)
            .await
            .unwrap();
    });
    assert!(matches!(locked.await, Err(StoreError::Conflict)));
    sqlx::raw_sql("COMMIT").execute(&mut blocker).await.unwrap();
    let raise = replicas.sql("UPDATE store_meta SET token_floor = token_floor + 10");
    let raised = replicas.meet(&ours, raise);
    assert!(matches!(raised.await, Err(StoreError::Conflict)));
    assert!(matches!(
        one(&replicas.ours, &release(2)).await,
        Done::Released(_)
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_bound_meanwhile_takes_the_whole_batch_back() {
    // The same key for two requests on two resources: no row of a resource tells of that.
    let replicas = Replicas::start().await;
    let keyed = |resource: &str, number| {
        let Operation::Acquire(mut op) = acquire(resource, number, Turn::Once) else {
            unreachable!("an acquire");
        };
        op.key = Some(Key {
            name: KeyName {
                issuer: "t".into(),
                key: "k".into(),
            },
            fingerprint: resource.into(),
        });
        Operation::Acquire(op)
    };
    let met = replicas
        .meet(&keyed("ours", 1), async {
            replicas.they(&keyed("theirs", 2)).await;
        })
        .await;
    assert!(matches!(met, Err(StoreError::Conflict)), "{met:?}");
    assert_eq!(one(&replicas.ours, &keyed("ours", 1)).await, Done::KeyReused);
    let free = one(&replicas.ours, &acquire("ours", 3, Turn::Once)).await;
    assert!(matches!(free, Done::Acquired { lease, .. } if lease.token.number() == 1));
}
