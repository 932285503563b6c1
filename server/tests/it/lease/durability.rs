//! Which stores open, which are refused, and what a crash must not lose.

use std::collections::HashMap;
use std::time::Duration;

use ::lease::operation::Operation;
use ::lease::store::sqlite::SqliteStore;
use ::lease::store::{Lane, Store as _, StoreError};
use ::lease::{LeaseConfig, LeaseOpenError, LeaseService, raise_epoch};
use ::testkit::PostgresOptions;
use domain::names::Resource;
use runtime::clock::Clock;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::lease_server::{LeaseStore, StoreKind, answer, is_granted, on_both_stores, token};
use crate::process::running_server::Running;
use testkit::eventually;

async fn open(lease_store: &LeaseStore) -> Result<(), LeaseOpenError> {
    let opened = LeaseService::open(
        &lease_store.url,
        LeaseConfig::default(),
        Clock::start(),
        CancellationToken::new(),
    )
    .await;
    opened.map(drop)
}

#[tokio::test]
async fn a_second_server_on_one_sqlite_file_is_refused_by_name() {
    // Also through a link to the file; the refusal names the process; once it is closed the file opens.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    let refusal = open(&store).await.unwrap_err().to_string();
    assert!(
        refusal.contains(&format!("pid {}", std::process::id())),
        "{refusal}"
    );
    let link = store.folder.path().join("link.db");
    std::os::unix::fs::symlink(store.folder.path().join("leases.db"), &link).unwrap();
    let linked = format!("sqlite:{}", link.display());
    let again = LeaseService::open(
        &linked,
        LeaseConfig::default(),
        Clock::start(),
        CancellationToken::new(),
    )
    .await;
    assert!(matches!(again.map(drop), Err(LeaseOpenError::InUse { .. })));
    server.close().await;
    open(&store).await.unwrap();
}

#[tokio::test]
async fn a_closed_sqlite_store_leaves_its_file_to_the_next() {
    // A task that ends later still has the closed store, and a batch for it.
    let lease_store = LeaseStore::new(StoreKind::Sqlite).await;
    let closed = lease_store.open(&Clock::start()).await;
    closed.close().await;
    let next = lease_store.open(&Clock::start()).await;
    let late = [Operation::Expire {
        resource: Resource::from("late"),
    }];
    let answer = closed.apply(Lane::Main, &late).await;
    assert!(matches!(answer, Err(StoreError::Down(_))), "{answer:?}");
    next.close().await;
}

#[tokio::test]
async fn a_postgres_with_asynchronous_commit_is_refused() {
    // Trap 6: synchronous_commit off for all roles is found at start; with on for this role the store opens.
    let settings = vec![("synchronous_commit".to_owned(), "off".to_owned())];
    let options = PostgresOptions {
        fast: true,
        settings,
        ..Default::default()
    };
    let store = LeaseStore::postgres(tempfile::tempdir().unwrap(), options).await;
    let refusal = open(&store).await.unwrap_err();
    assert!(matches!(refusal, LeaseOpenError::NotDurable(_)), "{refusal}");
    store.sql("ALTER ROLE postgres SET synchronous_commit = on").await;
    open(&store).await.unwrap();
}

#[tokio::test]
async fn an_sqlite_file_of_another_journal_mode_is_made_durable() {
    // Trap 8: the file reports WAL afterwards; `synchronous` is asserted on the writer's own session at start.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    std::fs::write(store.folder.path().join("leases.db"), b"").unwrap();
    store
        .sql("PRAGMA journal_mode = DELETE; CREATE TABLE other (n INTEGER)")
        .await;
    open(&store).await.unwrap();
    use sqlx::Connection as _;
    let mut connection = sqlx::SqliteConnection::connect(&store.url).await.unwrap();
    let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(mode, "wal");
}

#[tokio::test]
async fn every_sqlite_writer_syncs_each_commit() {
    // Trap 8: the pragmas as the writer's own session reports them; and again after that session was replaced, because
    // a foreign transaction had blocked it for too long.
    use sqlx::{Connection as _, Executor as _};
    let lease_store = LeaseStore::new(StoreKind::Sqlite).await;
    let path = lease_store.url.strip_prefix("sqlite:").unwrap();
    let store = SqliteStore::open(path.as_ref(), Clock::start()).await.unwrap();
    let durable = ("wal".to_owned(), 2);
    assert_eq!(store.writer_settings().await.unwrap(), durable);
    let note = [Operation::Expire {
        resource: Resource::from("r"),
    }];
    let mut blocker = sqlx::SqliteConnection::connect(&lease_store.url).await.unwrap();
    blocker
        .execute("BEGIN IMMEDIATE; UPDATE store_meta SET epoch = epoch")
        .await
        .unwrap();
    assert!(store.apply(Lane::Main, &note).await.is_err());
    blocker.execute("COMMIT").await.unwrap();
    store.apply(Lane::Main, &note).await.unwrap();
    assert_eq!(store.writer_settings().await.unwrap(), durable);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgres_that_turns_asynchronous_is_refused() {
    // Trap 6: the role's setting is changed and our sessions are ended: the next ones confirm no commit until it is
    // restored.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    let lease = server.acquire("r", "o", 60).await;
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'leasehold'";
    store
        .sql("ALTER ROLE postgres SET synchronous_commit = off")
        .await;
    store.sql(end).await;
    // The first call may find the ended session.
    for _ in 0..3 {
        let body = json!({"resource": "new", "ownerId": "o", "ttlSeconds": 30});
        let (status, problem) = server.post("/v1/locks/acquire", body).await;
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (503, &json!("store_unavailable"))
        );
        assert_eq!(server.renew_once(&lease).await.0.as_u16(), 503);
    }
    store.sql("ALTER ROLE postgres SET synchronous_commit = on").await;
    eventually("it serves again", || async {
        server.renew(&lease).await.0.is_success()
    })
    .await;
    assert_eq!(token(&server.acquire("new", "o", 30).await), 1);
    server.close().await;
}

/// Copies the file of a closed store.
fn back_up(store: &LeaseStore) {
    let folder = store.folder.path();
    std::fs::copy(folder.join("leases.db"), folder.join("copy.db")).unwrap();
}

/// The witness file stays, as in the documented restore.
fn restore(store: &LeaseStore) {
    let folder = store.folder.path();
    for tail in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("leases.db{tail}")));
    }
    std::fs::copy(folder.join("copy.db"), folder.join("leases.db")).unwrap();
}

#[tokio::test]
async fn a_restored_backup_is_refused_until_its_epoch_is_raised() {
    // Trap 9: tokens 2 and 3 were issued after the copy; they never come again.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    server.delete(&server.acquire("r", "o", 30).await).await;
    server.close().await;
    back_up(&store);
    let server = store.serve().await;
    for expected in [2, 3] {
        let lease = server.acquire("r", "o", 30).await;
        assert_eq!(token(&lease), expected);
        server.delete(&lease).await;
    }
    server.close().await;
    restore(&store);
    assert!(matches!(open(&store).await, Err(LeaseOpenError::Rewound(_))));
    assert_eq!(
        raise_epoch(&store.url, &LeaseConfig::default(), None)
            .await
            .unwrap(),
        [2]
    );
    let server = store.serve().await;
    assert!(token(&server.acquire("r", "o", 30).await) > 1 << 32);
    server.close().await;
}

#[tokio::test]
async fn a_backup_restored_twice_repeats_no_token() {
    // Trap 9: tokens of epoch 2 were issued after the first restore; epoch 3 begins above them, although the backup knows
    // neither.
    let store = LeaseStore::new(StoreKind::Sqlite).await;
    let server = store.serve().await;
    server.delete(&server.acquire("r", "o", 30).await).await;
    server.close().await;
    back_up(&store);
    let mut last = 1;
    for epoch in [2, 3] {
        restore(&store);
        let raised = raise_epoch(&store.url, &LeaseConfig::default(), None).await;
        assert_eq!(raised.unwrap(), [epoch]);
        let server = store.serve().await;
        let lease = server.acquire("r", "o", 30).await;
        assert!(token(&lease) > last, "epoch {epoch}: {lease} after {last}");
        last = token(&lease);
        server.delete(&lease).await;
        server.close().await;
    }
}

on_both_stores!(
    a_decreased_counter_is_refused_until_the_epoch_is_raised,
    |store| {
        // Traps 9, 36: the row can neither be deleted nor lowered while its triggers exist; without them the start detects
        // it.
        let server = store.serve().await;
        for _ in 0..2 {
            server.delete(&server.acquire("r", "o", 30).await).await;
        }
        server.close().await;
        let refuse = |statement: &'static str| async move {
            use sqlx::Connection as _;
            if store.postgres.is_some() {
                let mut connection = sqlx::PgConnection::connect(&store.url).await.unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.is_err()
            } else {
                let mut connection = sqlx::SqliteConnection::connect(&store.url).await.unwrap();
                sqlx::raw_sql(statement).execute(&mut connection).await.is_err()
            }
        };
        assert!(refuse("DELETE FROM resource_tokens").await);
        assert!(refuse("UPDATE resource_tokens SET last_token = 1").await);
        let on = if store.postgres.is_some() {
            " ON resource_tokens"
        } else {
            ""
        };
        store
            .sql(&format!(
                "DROP TRIGGER resource_tokens_no_decrease{on}; UPDATE resource_tokens SET last_token = 1"
            ))
            .await;
        assert!(matches!(open(store).await, Err(LeaseOpenError::Rewound(_))));
        raise_epoch(&store.url, &LeaseConfig::default(), None)
            .await
            .unwrap();
        let server = store.serve().await;
        assert!(token(&server.acquire("r", "o", 30).await) > 1 << 32);
        server.close().await;
    }
);

#[tokio::test]
async fn a_promoted_or_restored_postgres_raises_every_token() {
    // Traps 6, 7: another timeline may lack the last commits; the change is detected at start, and tokens are
    // raised once.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    let server = store.serve().await;
    server.delete(&server.acquire("r", "o", 30).await).await;
    server.close().await;
    store
        .sql("UPDATE store_meta SET cluster_identity = 'another:00000007'")
        .await;
    let server = store.serve().await;
    let lifted = token(&server.acquire("r", "o", 30).await);
    assert!(lifted > 1 << 32);
    server.close().await;
    let server = store.serve().await;
    let other = server.acquire("other", "o", 30).await;
    assert_eq!(token(&other), lifted, "lifted once, not at each start");
    server.close().await;
    // The log of the server that raises them says so, and that of the next one does not.
    store
        .sql("UPDATE store_meta SET cluster_identity = 'another:00000008'")
        .await;
    let raising = Running::on(store.url.clone(), "").await;
    let why = "was restored or promoted: every fencing token is raised by 2^32";
    raising.logs(why).await;
    let next = raising.another().await;
    assert!(!next.log().contains(why), "{}", next.log());
}

#[tokio::test]
async fn raising_the_epoch_may_take_longer_than_an_operation() {
    // All leases and counters are read: a trigger makes it as slow as in a large store.
    let store = LeaseStore::new(StoreKind::Postgres).await;
    store.serve().await.close().await;
    store
        .sql(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN PERFORM pg_sleep(2); RETURN NEW; END $$;
             CREATE TRIGGER wait BEFORE UPDATE ON store_meta FOR EACH ROW EXECUTE FUNCTION wait()",
        )
        .await;
    let raised = raise_epoch(&store.url, &LeaseConfig::default(), None).await;
    assert_eq!(raised.unwrap(), [2]);
}

#[tokio::test]
async fn the_last_answer_survives_a_killed_postgres() {
    // Trap 5 with a single client: no later commit can make the answered grant durable before kill -9.
    let store = LeaseStore::postgres(tempfile::tempdir().unwrap(), PostgresOptions::default()).await;
    let postgres = store.postgres.as_ref().unwrap();
    let server = store.serve().await;
    for round in 0..3 {
        let resource = format!("r{round}");
        let lease = server.acquire(&resource, "o", 30).await;
        postgres.kill().await.unwrap();
        postgres.restart().await.unwrap();
        eventually("it serves again", || async {
            let body = json!({"resource": "probe", "ownerId": "o", "ttlSeconds": 1});
            server.post("/v1/locks/acquire", body).await.0.is_success()
        })
        .await;
        let kept = server.resource(&resource).await["lastFencingToken"].as_u64();
        assert_eq!(kept, Some(token(&lease)), "round {round}");
    }
    server.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acknowledged_token_survives_a_killed_postgres() {
    // Trap 5: kill -9 of the whole server under load; every answered grant is in the store afterwards, and no token
    // repeats.
    let store = LeaseStore::postgres(tempfile::tempdir().unwrap(), PostgresOptions::default()).await;
    let postgres = store.postgres.as_ref().unwrap();
    let server = store.serve().await;
    let mut seen: HashMap<String, u64> = HashMap::new();
    for round in 0..2 {
        let work = |number: usize| {
            let (http, base) = (server.http.clone(), server.base.clone());
            async move {
                let mut tokens = Vec::new();
                loop {
                    let body = json!({"resource": format!("r{number}"), "ownerId": "o", "ttlSeconds": 1});
                    let (status, lease) =
                        answer(http.post(format!("{base}/v1/locks/acquire")).json(&body)).await;
                    if !status.is_success() {
                        return tokens;
                    }
                    if is_granted(&lease) {
                        tokens.push(token(&lease));
                        let url = format!("{base}/v1/locks/{}", lease["leaseId"].as_str().unwrap());
                        if !answer(http.delete(url)).await.0.is_success() {
                            return tokens;
                        }
                    }
                }
            }
        };
        let load = futures::future::join_all((0..8).map(work));
        let kill = async {
            // The kill hits a store under load, at any moment.
            tokio::time::sleep(Duration::from_millis(700)).await;
            postgres.kill().await.unwrap();
        };
        let (tokens, ()) = tokio::join!(load, kill);
        postgres.restart().await.unwrap();
        for (number, tokens) in tokens.into_iter().enumerate() {
            let last = seen.entry(format!("r{number}")).or_insert(0);
            for token in tokens {
                assert!(token > *last, "round {round}, r{number}: {token} after {last}");
                *last = token;
            }
        }
        eventually("it serves again", || async {
            let body = json!({"resource": "probe", "ownerId": "o", "ttlSeconds": 1});
            server.post("/v1/locks/acquire", body).await.0.is_success()
        })
        .await;
        for (resource, last) in &seen {
            let now = server.resource(resource).await["lastFencingToken"]
                .as_u64()
                .unwrap();
            assert!(now >= *last, "{resource}: answered {last}, kept {now}");
        }
    }
    assert!(
        seen.values().sum::<u64>() > 100,
        "too little load to prove anything: {seen:?}"
    );
    server.close().await;
}
