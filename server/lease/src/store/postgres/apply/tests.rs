//! Changes by another replica on the same Postgres between reading and writing: the batch must
//! not be written then.

use domain::lease::{LeaseId, Metadata, Revocation, Scope, Ttl};
use domain::names::{OwnerId, Resource};

use super::*;
use crate::LeasePrincipal;
use crate::operation::{AcquireMode, AcquireOp, IdempotencyKey, KeyName, OperationResult};
use runtime::clock::Clock;
use testkit::{Postgres, PostgresOptions, Throwaway};

/// Milliseconds. Long, so that a conflict comes from a changed row and not from a slow machine.
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
        let replicas = Self {
            ours: PostgresStore::open(&url, Clock::start()).await.unwrap(),
            theirs: PostgresStore::open(&url, Clock::start()).await.unwrap(),
            server,
        };
        // No task sends heartbeats here: on a slow machine the waiters of `ours` would not count any more.
        replicas
            .sql("UPDATE lease_replicas SET heartbeat_at = heartbeat_at + 3600000")
            .await;
        replicas
    }

    /// Reads, awaits `between`, then writes the batch that is based on the reading.
    async fn write_after(
        &self,
        ours: &Operation,
        between: impl Future<Output = ()>,
    ) -> Result<Applied, StoreError> {
        Box::pin(self.write_after_within(PATIENT, ours, Box::pin(between))).await
    }

    async fn write_after_within(
        &self,
        max_age_ms: i64,
        ours: &Operation,
        between: impl Future<Output = ()>,
    ) -> Result<Applied, StoreError> {
        let mut connection = self.ours.connect().await.unwrap();
        let operations = std::slice::from_ref(ours);
        let request = LoadRequest::from_request(&BatchRequest::from_operations(operations));
        let rows = self.ours.load(&mut connection, &request).await?;
        let pending = PendingWrite::new(rows, operations, &self.ours.replica)?;
        assert!(!pending.ran.changes.is_empty(), "{ours:?} has something to write");
        between.await;
        let result = self
            .ours
            .save_pending(&mut connection, pending, Some(max_age_ms))
            .await;
        result.map(|(applied, _)| applied)
    }

    async fn other(&self, operation: &Operation) -> OperationResult {
        apply_one(&self.theirs, operation).await
    }

    async fn connect(&self) -> PgConnection {
        use sqlx::Connection as _;
        PgConnection::connect(&self.server.superuser_url()).await.unwrap()
    }

    async fn sql(&self, sql: &'static str) {
        sqlx::raw_sql(sql)
            .execute(&mut self.connect().await)
            .await
            .unwrap();
    }

    /// Hides the waiters of both.
    async fn stop_heartbeats(&self) {
        self.sql("UPDATE lease_replicas SET heartbeat_at = heartbeat_at - 7200000")
            .await;
    }

    /// Rows of waiters, hidden or not.
    async fn waiters_in(&self, resource: &str) -> i64 {
        let query = sqlx::query_scalar("SELECT count(*) FROM lease_waiters WHERE resource = $1");
        let mut connection = self.connect().await;
        query.bind(resource).fetch_one(&mut connection).await.unwrap()
    }
}

async fn apply_one(store: &PostgresStore, operation: &Operation) -> OperationResult {
    let mut applied = store
        .write(Lane::Main, std::slice::from_ref(operation))
        .await
        .unwrap();
    applied.done.remove(0)
}

fn lease(number: u8) -> LeaseId {
    LeaseId::from_parts(1_700_000_000_000, [number; 10])
}

fn acquire(resource: &str, number: u8, mode: AcquireMode) -> Operation {
    Operation::Acquire(Box::new(AcquireOp {
        resource: Resource::from(resource),
        id: lease(number),
        owner: OwnerId::new("o"),
        issuer: "t".into(),
        ttl: Ttl::parse(30, 3_600).unwrap(),
        metadata: Metadata::default(),
        key: None,
        mode,
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

fn leave(resource: &str, number: u8) -> Operation {
    Operation::Leave {
        resource: Resource::from(resource),
        waiter: lease(number),
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

/// Resource, earlier operations, our operation, the other replica's operation before our write.
fn conflicts() -> Vec<(&'static str, Vec<Operation>, Operation, Operation)> {
    let acquire_once = |resource, number| acquire(resource, number, AcquireMode::Once);
    vec![
        (
            "both insert",
            vec![],
            acquire_once("both insert", 1),
            acquire_once("both insert", 2),
        ),
        (
            "both acquire",
            vec![acquire_once("both acquire", 3), release(3)],
            acquire_once("both acquire", 4),
            acquire_once("both acquire", 5),
        ),
        ("renewed", vec![acquire_once("renewed", 6)], release(6), renew(6)),
        (
            "released",
            vec![acquire_once("released", 7)],
            renew(7),
            release(7),
        ),
        (
            "revoked",
            vec![acquire_once("revoked", 8)],
            renew(8),
            revoke(8, 0),
        ),
        (
            "waiter joins",
            vec![acquire_once("waiter joins", 9)],
            release(9),
            acquire("waiter joins", 10, AcquireMode::OrWait),
        ),
        (
            "waiter leaves",
            vec![
                acquire_once("waiter leaves", 11),
                acquire("waiter leaves", 12, AcquireMode::OrWait),
            ],
            release(11),
            leave("waiter leaves", 12),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_changes_are_conflicts() {
    let replicas = Replicas::start().await;
    for (name, before, ours, theirs) in conflicts() {
        for operation in &before {
            apply_one(&replicas.ours, operation).await;
        }
        let result = replicas
            .write_after(&ours, async {
                replicas.other(&theirs).await;
            })
            .await;
        assert!(matches!(result, Err(StoreError::Conflict)), "{name}: {result:?}");
        // Under row locks it succeeds whatever the other replica did.
        apply_one(&replicas.ours, &ours).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn batches_without_conflict_are_written() {
    // Negative control: the same batches with no concurrent change.
    let replicas = Replicas::start().await;
    for (name, before, ours, _) in conflicts() {
        for operation in &before {
            apply_one(&replicas.ours, operation).await;
        }
        let result = replicas.write_after(&ours, async {}).await;
        assert!(result.is_ok(), "{name}: {result:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_state_is_compared_with_the_rows() {
    // The cache holds all of these rows when the other replica changes them; our results must
    // reflect its changes.
    let replicas = Replicas::start().await;
    let ours = &replicas.ours;
    let acquire_once = |resource: &str, number| acquire(resource, number, AcquireMode::Once);
    for operation in [
        acquire_once("taken", 1),
        release(1),
        acquire_once("ended", 2),
        acquire_once("passed on", 3),
    ] {
        apply_one(ours, &operation).await;
    }
    for operation in [
        acquire_once("taken", 4),
        revoke(2, 0),
        release(3),
        acquire_once("passed on", 5),
    ] {
        replicas.other(&operation).await;
    }
    let refused = apply_one(ours, &acquire_once("taken", 6)).await;
    assert!(matches!(refused, OperationResult::Refused { .. }), "{refused:?}");
    let lost = apply_one(ours, &renew(2)).await;
    assert!(matches!(lost, OperationResult::Lost(..)), "{lost:?}");
    let lost = apply_one(ours, &release(3)).await;
    assert!(matches!(lost, OperationResult::Lost(..)), "{lost:?}");
    // Released by the other replica, with a token one higher than in the cache.
    replicas.other(&release(4)).await;
    let OperationResult::Acquired { lease, .. } = apply_one(ours, &acquire_once("taken", 7)).await else {
        panic!("it is free");
    };
    assert_eq!(lease.token.number(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn late_write_or_locked_row_is_a_conflict() {
    // A paused process, a row locked by another session, a raised token floor: each is a
    // conflict, without waiting.
    let replicas = Replicas::start().await;
    let ours = acquire("r", 1, AcquireMode::Once);
    let paused = replicas.write_after_within(STEP_MS, &ours, async {
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    });
    assert!(matches!(paused.await, Err(StoreError::Conflict)));
    apply_one(&replicas.ours, &acquire("r", 2, AcquireMode::Once)).await;
    let mut blocker = replicas.theirs.connect().await.unwrap();
    let ours = release(2);
    let locked = replicas.write_after(&ours, async {
        sqlx::raw_sql("BEGIN; SELECT FROM resource_tokens WHERE resource = 'r' FOR UPDATE")
            .execute(&mut blocker)
            .await
            .unwrap();
    });
    assert!(matches!(locked.await, Err(StoreError::Conflict)));
    sqlx::raw_sql("COMMIT").execute(&mut blocker).await.unwrap();
    let raise_floor = replicas.sql("UPDATE store_meta SET token_floor = token_floor + 10");
    let conflicting = replicas.write_after(&ours, raise_floor);
    assert!(matches!(conflicting.await, Err(StoreError::Conflict)));
    assert!(matches!(
        apply_one(&replicas.ours, &release(2)).await,
        OperationResult::Released(_)
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrently_bound_key_rolls_back_the_batch() {
    // The same key on two requests for two resources: no resource row shows that conflict.
    let replicas = Replicas::start().await;
    let keyed = |resource: &str, number| {
        let Operation::Acquire(mut op) = acquire(resource, number, AcquireMode::Once) else {
            unreachable!("an acquire");
        };
        op.key = Some(IdempotencyKey {
            name: KeyName {
                issuer: "t".into(),
                key: "k".into(),
            },
            fingerprint: resource.into(),
        });
        Operation::Acquire(op)
    };
    let result = replicas
        .write_after(&keyed("ours", 1), async {
            replicas.other(&keyed("theirs", 2)).await;
        })
        .await;
    assert!(matches!(result, Err(StoreError::Conflict)), "{result:?}");
    assert_eq!(
        apply_one(&replicas.ours, &keyed("ours", 1)).await,
        OperationResult::KeyReused
    );
    let free = apply_one(&replicas.ours, &acquire("ours", 3, AcquireMode::Once)).await;
    assert!(matches!(free, OperationResult::Acquired { lease, .. } if lease.token.number() == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_hidden_without_a_heartbeat_keeps_its_row() {
    // This process was paused: its waiter tries again before the first heartbeat is sent, and does not see itself in the queue.
    let replicas = Replicas::start().await;
    apply_one(&replicas.ours, &acquire("r", 1, AcquireMode::Once)).await;
    apply_one(&replicas.ours, &acquire("r", 2, AcquireMode::OrWait)).await;
    replicas.stop_heartbeats().await;
    let batch = [
        acquire("r", 2, AcquireMode::Waiting),
        acquire("other", 3, AcquireMode::Once),
    ];
    let done = replicas.ours.write(Lane::Main, &batch).await.unwrap().done;
    assert!(
        matches!(
            &done[..],
            [OperationResult::Queued { .. }, OperationResult::Acquired { .. }]
        ),
        "{done:?}"
    );
    assert_eq!(replicas.waiters_in("r").await, 1);
    // Granted while it is hidden, it leaves no row behind.
    apply_one(&replicas.ours, &release(1)).await;
    let granted = apply_one(&replicas.ours, &batch[0]).await;
    assert!(matches!(granted, OperationResult::Acquired { .. }), "{granted:?}");
    assert_eq!(replicas.waiters_in("r").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_that_leaves_while_it_is_hidden_leaves_no_row() {
    let replicas = Replicas::start().await;
    apply_one(&replicas.ours, &acquire("r", 1, AcquireMode::Once)).await;
    apply_one(&replicas.ours, &acquire("r", 2, AcquireMode::OrWait)).await;
    replicas.stop_heartbeats().await;
    apply_one(&replicas.ours, &leave("r", 2)).await;
    assert_eq!(replicas.waiters_in("r").await, 0);
}
