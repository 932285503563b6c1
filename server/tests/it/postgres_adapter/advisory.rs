//! Advisory locks.

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use ::testkit::Postgres;
use domain::observation::{Inspection, Lifetime, ObservedCondition};
use domain::safety::SafetyClass;
use sqlx::PgConnection;
use tokio::task::JoinHandle;

use super::watched_postgres::*;
use testkit::eventually;

#[tokio::test]
async fn keys_of_both_forms_decode_in_every_database() {
    // Each key is taken with the SQL that users write; the resource must carry the same numbers.
    let server = server().await;
    let mut user_a = user(&server.superuser_url()).await;
    run(&mut user_a, "CREATE DATABASE \"other db\"").await;
    let one = [0, 1, -1, i64::MAX, i64::MIN, 1 << 32, -(1 << 32), 72_707_369];
    let two = [
        (0, 0),
        (1, -1),
        (i32::MIN, i32::MAX),
        (i32::MIN, i32::MIN),
        (-7, 9),
    ];
    for key in one {
        sqlx::query("SELECT pg_advisory_lock($1)")
            .bind(key)
            .execute(&mut user_a)
            .await
            .unwrap();
    }
    for (first, second) in two {
        sqlx::query("SELECT pg_advisory_lock($1, $2)")
            .bind(first)
            .bind(second)
            .execute(&mut user_a)
            .await
            .unwrap();
    }
    let mut user_b = user(&server.superuser_url_to("other db")).await;
    run(&mut user_b, "SELECT pg_advisory_lock(-5)").await;
    let backend = backend(&server.superuser_url(), Vec::new());
    let observed = observe(&backend).await;
    let mut expected: Vec<String> = one.iter().map(|key| format!("advisory:postgres:{key}")).collect();
    expected.extend(
        two.iter()
            .map(|(first, second)| format!("advisory:postgres:{first}:{second}")),
    );
    expected.push("advisory:other db:-5".to_owned());
    expected.sort();
    assert_eq!(observed.names_in("advisory"), expected);
    let lock = observed.lock("advisory", "advisory:other db:-5");
    assert!(
        matches!(lock.lifetime, Lifetime::Session { .. }) && lock.fencing_token.is_absent(),
        "{lock:?}"
    );
    let (source, prisma) = id("advisory", "advisory:postgres:72707369");
    assert_eq!(backend.safety(&source).class, SafetyClass::Efficiency);
    let detail = backend.inspect(&source, &prisma).await.unwrap();
    assert!(
        detail
            .raw
            .iter()
            .any(|field| field.name == "known as" && field.value == "Prisma Migrate"),
        "{detail:?}"
    );
    assert_eq!(
        detail.related_locks.len(),
        one.len() + two.len() - 1,
        "{:?}",
        detail.related_locks
    );
}

const SHARED: &str = "advisory:postgres:42";

/// Key 42: shared by `first` at session level and by `second` in a transaction; `report` waits to have it alone.
struct Shared {
    server: Postgres,
    backend: PostgresBackend,
    first: PgConnection,
    second: PgConnection,
    /// Of `first`, `second` and the waiter.
    pids: [i32; 3],
    waiting: JoinHandle<()>,
}

async fn shared() -> Shared {
    let server = server().await;
    let url = server.superuser_url();
    let mut first = named_user(&url, "billing").await;
    let mut second = user(&url).await;
    let mut waiter = named_user(&url, "report").await;
    let pids = [
        pid(&mut first).await,
        pid(&mut second).await,
        pid(&mut waiter).await,
    ];
    run(&mut first, "SELECT pg_advisory_lock_shared(42)").await;
    run(&mut second, "BEGIN; SELECT pg_advisory_xact_lock_shared(42)").await;
    let waiting = later(waiter, "SELECT pg_advisory_lock(42)");
    let backend = backend(&url, Vec::new());
    eventually("the waiter is observed", || async {
        observe(&backend)
            .await
            .lock("advisory", SHARED)
            .waiter_count
            .known()
            == Some(&1)
    })
    .await;
    Shared {
        server,
        backend,
        first,
        second,
        pids,
        waiting,
    }
}

async fn detail(backend: &PostgresBackend) -> Inspection {
    let (source, resource) = id("advisory", SHARED);
    backend.inspect(&source, &resource).await.unwrap()
}

fn level(detail: &Inspection) -> &str {
    &detail
        .raw
        .iter()
        .find(|field| field.name == "level")
        .unwrap()
        .value
}

#[tokio::test]
async fn sharers_and_waiters_of_one_key_are_one_row() {
    // Two sharers and an exclusive waiter behind them: the generation names both sharers.
    let shared = shared().await;
    let [first, second, _] = shared.pids;
    let observed = observe(&shared.backend).await;
    assert_eq!(observed.locks.len(), 1, "{:?}", observed.locks.keys());
    let lock = observed.lock("advisory", SHARED);
    assert_eq!((lock.owner_count, lock.oldest_waiter_ms.is_some()), (2, true));
    assert_eq!(lock.owner.known().unwrap().as_str(), format!("billing#{first}"));
    let generation = lock.generation.known().unwrap().as_str();
    let [one, two]: [&str; 2] = generation.split('+').collect::<Vec<_>>().try_into().unwrap();
    assert!(one.starts_with(&format!("pid:{first}@2")), "{generation}");
    assert!(two.starts_with(&format!("pid:{second}@2")), "{generation}");
    let sharers: Vec<(&str, &str)> = lock
        .sharers
        .iter()
        .map(|sharer| {
            (
                sharer.generation.as_str(),
                sharer.owner.as_ref().unwrap().as_str(),
            )
        })
        .collect();
    let (first, second) = (format!("billing#{first}"), format!("session#{second}"));
    assert_eq!(sharers, [(one, first.as_str()), (two, second.as_str())]);
    assert!(
        lock.acquired_at.why().unwrap().contains("session-level"),
        "{lock:?}"
    );
    shared.waiting.abort();
    drop(shared.server);
}

#[tokio::test]
async fn the_detail_of_a_key_has_waiters_owners_session_and_tree() {
    // The waiter is listed below a holder, and both holders have their queries.
    let shared = shared().await;
    let [first, second, waiter] = shared.pids;
    let detail = detail(&shared.backend).await;
    let waiters: Vec<_> = detail
        .waiters
        .iter()
        .map(|waiter| waiter.owner_id.as_str())
        .collect();
    assert_eq!(waiters, [format!("report#{waiter}")]);
    assert!(detail.waiters[0].position == 1 && detail.waiters[0].waited_ms.is_known());
    let owners: Vec<&str> = detail.owners.iter().map(|owner| owner.as_str()).collect();
    assert_eq!(owners, [format!("billing#{first}"), format!("session#{second}")]);
    let session = detail.session.unwrap();
    assert_eq!((session.pid, session.state.as_str()), (first, "idle"));
    assert_eq!(session.client_address.as_deref(), Some("127.0.0.1"));
    assert!(session.query.contains("pg_advisory_lock_shared"), "{session:?}");
    let blocked: usize = detail.blockers.iter().map(|root| root.blocks.len()).sum();
    assert_eq!((detail.blockers.len(), blocked), (2, 1), "{:?}", detail.blockers);
    for root in &detail.blockers {
        assert_eq!(root.holds, "ShareLock on advisory key 42");
    }
}

#[tokio::test]
async fn the_level_of_a_key_is_reported_only_if_proven() {
    // An idle session proves session level; a session in a transaction proves no level, and bounds the time.
    let mut shared = shared().await;
    let idle = detail(&shared.backend).await;
    assert!(level(&idle).starts_with("session level"), "{:?}", idle.raw);
    run(&mut shared.first, "SELECT pg_advisory_unlock_all()").await;
    let open = detail(&shared.backend).await;
    assert!(
        level(&open).starts_with("unknown: its session is in a transaction"),
        "{:?}",
        open.raw
    );
    let lock = open.lock.unwrap();
    assert!(
        lock.acquired_at
            .why()
            .unwrap()
            .contains("transaction began at xact_start"),
        "{lock:?}"
    );
    let began = open.raw.iter().find(|field| field.name.ends_with("xact_start"));
    assert!(began.unwrap().value.starts_with('2'), "{:?}", open.raw);
    run(&mut shared.second, "COMMIT").await;
    shared.waiting.await.unwrap();
    // The waiter ends with its task: its session, and so the lock, is gone.
    eventually("the lock is free", || async {
        detail(&shared.backend).await.lock.is_none()
    })
    .await;
}

#[tokio::test]
async fn a_prepared_transaction_that_holds_a_key_is_orphaned() {
    // PREPARE TRANSACTION, then the session ends: the lock stays, and another session's wait times out.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = user(&url).await;
    run(
        &mut holder,
        "BEGIN; SELECT pg_advisory_xact_lock(7, -7); PREPARE TRANSACTION 'payment 17'",
    )
    .await;
    drop(holder);
    let waiter = user(&url).await;
    let waiting = later(waiter, "SELECT pg_advisory_lock(7, -7)");
    let backend = backend(&url, Vec::new());
    let (source, resource) = id("advisory", "advisory:postgres:7:-7");
    eventually("the waiter is observed", || async {
        !backend
            .inspect(&source, &resource)
            .await
            .unwrap()
            .waiters
            .is_empty()
    })
    .await;
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    assert_eq!(lock.owner.known().unwrap().as_str(), "prepared#payment 17");
    let Some(ObservedCondition::Orphaned { why }) = &lock.condition else {
        panic!("{lock:?}")
    };
    assert!(why.contains("\"payment 17\" of postgres since 2"), "{why}");
    assert!(
        lock.generation
            .known()
            .unwrap()
            .as_str()
            .starts_with("prepared:payment 17@2")
    );
    assert_eq!(
        (detail.blockers.len(), detail.blockers[0].blocks.len()),
        (1, 1),
        "{:?}",
        detail.blockers
    );
    assert_eq!(detail.blockers[0].pid, None);
    assert_eq!(detail.session, None);
    // Over a crash of the server it is still there, and is still the same acquisition.
    waiting.abort();
    server.kill().await.unwrap();
    server.restart().await.unwrap();
    let again = backend.inspect(&source, &resource).await.unwrap().lock.unwrap();
    assert_eq!(
        (again.generation, again.condition),
        (lock.generation, lock.condition)
    );
    run(&mut user(&url).await, "ROLLBACK PREPARED 'payment 17'").await;
    assert_eq!(backend.inspect(&source, &resource).await.unwrap().lock, None);
}

#[tokio::test]
async fn a_poolers_idle_session_that_holds_a_key_may_be_leaked() {
    // By the name the pooler gives itself, and by the role it logs in as; an ordinary idle holder is not accused.
    let server = server().await;
    let url = server.superuser_url();
    let mut pooled = named_user(&url, "PgBouncer").await;
    run(
        &mut pooled,
        "SELECT pg_advisory_lock(1); CREATE ROLE pgbouncer_app LOGIN",
    )
    .await;
    let mut role = user(&server.url("pgbouncer_app", "postgres")).await;
    run(&mut role, "SELECT pg_advisory_lock(2)").await;
    let mut plain = named_user(&url, "worker").await;
    run(&mut plain, "SELECT pg_advisory_lock(3)").await;
    let observed = observe(&backend(&url, Vec::new())).await;
    for key in ["advisory:postgres:1", "advisory:postgres:2"] {
        let lock = observed.lock("advisory", key);
        let Some(ObservedCondition::Note { why }) = &lock.condition else {
            panic!("{lock:?}")
        };
        assert!(why.starts_with("May be leaked through the pooler"), "{why}");
    }
    assert_eq!(observed.lock("advisory", "advisory:postgres:3").condition, None);
}

#[tokio::test]
async fn waiters_have_the_generation_of_their_future_holding() {
    // One holds, another waits and acquires: history records that the new holder had waited, and how long.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = named_user(&url, "billing").await;
    run(&mut holder, "SELECT pg_advisory_lock(43)").await;
    let waiter = named_user(&url, "report").await;
    let waiting = later(waiter, "SELECT pg_advisory_lock(43); SELECT pg_sleep(600)");
    let (backend, name) = (backend(&url, Vec::new()), "advisory:postgres:43");
    let mut line = Vec::new();
    eventually("the waiter is observed", async || {
        line = observe(&backend).await.lock("advisory", name).line.clone();
        line.len() == 1
    })
    .await;
    assert!(line[0].waited_ms.is_some_and(|ms| ms >= 0), "{line:?}");
    run(&mut holder, "SELECT pg_advisory_unlock(43)").await;
    eventually("the waiter holds it", async || {
        let observed = observe(&backend).await;
        let lock = observed.lock("advisory", name);
        lock.generation.known() == Some(&line[0].generation) && lock.line.is_empty()
    })
    .await;
    waiting.abort();
}

#[tokio::test]
async fn a_scan_without_locks_costs_two_statements() {
    // The clock; and the snapshot, which also shows whether the server is a standby. Of a session that is open already.
    let server = server().await;
    let url = server.superuser_url();
    run(
        &mut user(&url).await,
        "ALTER ROLE postgres SET log_statement = 'all'",
    )
    .await;
    let backend = backend(&url, Vec::new());
    let statements = || {
        let log = std::fs::read_to_string(server.log()).unwrap();
        log.matches("sqlx_s_").count()
    };
    observe(&backend).await;
    let before = statements();
    assert!(before > 0, "the statements are logged");
    observe(&backend).await;
    assert_eq!(statements() - before, 2);
}
