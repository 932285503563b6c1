//! Forced unlocks that end sessions: only the observed one, only while it holds the observed lock, with its whole
//! blast radius named.

mod races;

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use ::config::postgres::LeaseTablePreset;
use domain::force_release::{BlastRadius, CasualtyKind, Release};
use domain::generation::Generation;
use sqlx::{AssertSqlSafe, Executor, PgConnection};

use super::release::{unlocker, unlocker_through};
use super::watched_postgres::*;
use crate::support::unlocking::{act, generation, unlock};

const PAGE: &str = include_str!("../../../../docs/backends/postgres.md");

async fn is_alive(session: &mut PgConnection) -> bool {
    session.execute("SELECT 1").await.is_ok()
}

async fn radius(backend: &PostgresBackend, source: &str, resource: &str) -> BlastRadius {
    let (source, resource) = id(source, resource);
    let observed = backend.inspect(&source, &resource).await.unwrap();
    observed.blast_radius.known().unwrap().clone()
}

fn dies(radius: &BlastRadius, kind: CasualtyKind) -> Vec<&str> {
    let of_kind = radius.dies.iter().filter(|dies| dies.kind == kind);
    of_kind.map(|dies| dies.what.as_str()).collect()
}

#[tokio::test]
async fn ending_an_advisory_holder_ends_only_that_session() {
    // Two keys, a table and an open transaction in one session; another session with a key of its own.
    let server = server().await;
    let url = server.superuser_url();
    let mut holder = named_user(&url, "billing").await;
    run(
        &mut holder,
        "CREATE TABLE invoices (n int); INSERT INTO invoices VALUES (1)",
    )
    .await;
    run(
        &mut holder,
        "SELECT pg_advisory_lock(42); SELECT pg_advisory_lock(7, 8); BEGIN; UPDATE invoices SET n = 2",
    )
    .await;
    let mut bystander = named_user(&url, "bystander").await;
    run(&mut bystander, "SELECT pg_advisory_lock(43)").await;
    let backend = unlocker(&url, vec![]);
    let radius = radius(&backend, "advisory", "advisory:postgres:42").await;
    let sessions = dies(&radius, CasualtyKind::Session);
    assert!(
        sessions.len() == 1 && sessions[0].starts_with("billing#"),
        "{radius:?}"
    );
    assert_eq!(dies(&radius, CasualtyKind::Transaction).len(), 1, "{radius:?}");
    let locks = dies(&radius, CasualtyKind::Lock);
    assert_eq!(
        locks,
        [
            "advisory lock 7:8 (ExclusiveLock)",
            "RowExclusiveLock on public.invoices"
        ]
    );
    let (source, resource) = id("advisory", "advisory:postgres:42");
    let old = generation(&backend, &source, &resource).await;
    let release = || async { backend.release(&source, &resource, &old, &act()).await.unwrap() };
    assert_eq!(release().await, Release::Released);
    assert!(!is_alive(&mut holder).await && is_alive(&mut bystander).await);
    assert_eq!(release().await, Release::AlreadyFree);
    run(&mut bystander, "SELECT pg_advisory_lock(42)").await;
    assert!(matches!(release().await, Release::HolderChanged { .. }));
    assert!(is_alive(&mut bystander).await);
}

#[tokio::test]
async fn every_sharer_must_be_unchanged() {
    // Two share a key; one more joins between review and release: no session is ended. After a new review, all three
    // are.
    let server = server().await;
    let url = server.superuser_url();
    let mut sharers = Vec::new();
    for name in ["one", "two"] {
        let mut session = named_user(&url, name).await;
        run(&mut session, "SELECT pg_advisory_lock_shared(5)").await;
        sharers.push(session);
    }
    let backend = unlocker(&url, vec![]);
    let (source, resource) = id("advisory", "advisory:postgres:5");
    let old = generation(&backend, &source, &resource).await;
    let mut third = named_user(&url, "three").await;
    run(&mut third, "SELECT pg_advisory_lock_shared(5)").await;
    sharers.push(third);
    let answer = backend.release(&source, &resource, &old, &act()).await.unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    for session in &mut sharers {
        assert!(is_alive(session).await);
    }
    let radius = radius(&backend, "advisory", "advisory:postgres:5").await;
    assert_eq!(dies(&radius, CasualtyKind::Session).len(), 3);
    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
    for session in &mut sharers {
        assert!(!is_alive(session).await);
    }
}

#[tokio::test]
async fn a_session_without_the_lock_or_with_a_reused_pid_is_not_ended() {
    // It holds the key no more, or its generation has another start: a process id that was given out again.
    let server = server().await;
    let url = server.superuser_url();
    let mut session = named_user(&url, "billing").await;
    run(&mut session, "SELECT pg_advisory_lock(42)").await;
    let backend = unlocker(&url, vec![]);
    let (source, resource) = id("advisory", "advisory:postgres:42");
    let old = generation(&backend, &source, &resource).await;
    let (pid, _) = old.as_str().split_once('@').unwrap();
    let reused = Generation::new(format!("{pid}@2020-01-01T00:00:00.000000Z"));
    let answer = backend
        .release(&source, &resource, &reused, &act())
        .await
        .unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    run(&mut session, "SELECT pg_advisory_unlock(42)").await;
    let answer = backend.release(&source, &resource, &old, &act()).await.unwrap();
    assert_eq!(answer, Release::AlreadyFree);
    assert!(is_alive(&mut session).await);
}

#[tokio::test]
async fn only_the_named_transaction_of_a_root_blocker_is_ended() {
    // The blocker commits and blocks again in a new transaction: the old observation ends no session. Then it is
    // ended, and its waiters continue.
    let server = server().await;
    let url = server.superuser_url();
    let mut blocker = named_user(&url, "blocker").await;
    run(
        &mut blocker,
        "CREATE TABLE invoices (n int); INSERT INTO invoices VALUES (1)",
    )
    .await;
    let update = "BEGIN; UPDATE invoices SET n = n + 1";
    run(&mut blocker, update).await;
    let first = later(named_user(&url, "first").await, "UPDATE invoices SET n = 10");
    let backend = unlocker(&url, vec![]);
    let (source, resource) = id("relation", "relation:postgres:public.invoices");
    let old = seen_generation(&backend, None).await;
    run(&mut blocker, "COMMIT").await;
    first.await.unwrap();
    run(&mut blocker, update).await;
    let second = later(named_user(&url, "second").await, "UPDATE invoices SET n = 20");
    seen_generation(&backend, Some(&old)).await;
    let answer = backend.release(&source, &resource, &old, &act()).await.unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    assert!(is_alive(&mut blocker).await);
    let radius = radius(&backend, "relation", "relation:postgres:public.invoices").await;
    assert_eq!(dies(&radius, CasualtyKind::Transaction).len(), 1, "{radius:?}");
    assert_eq!(
        dies(&radius, CasualtyKind::Lock),
        ["RowExclusiveLock on public.invoices"]
    );
    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
    assert!(!is_alive(&mut blocker).await);
    second.await.unwrap();
    let mut reader = user(&url).await;
    let n: i32 = sqlx::query_scalar("SELECT n FROM invoices")
        .fetch_one(&mut reader)
        .await
        .unwrap();
    assert_eq!(n, 20);
}

/// Waits until the invoices are blocked by another generation than `old`.
async fn seen_generation(backend: &PostgresBackend, old: Option<&Generation>) -> Generation {
    let (source, resource) = id("relation", "relation:postgres:public.invoices");
    loop {
        let lock = backend.inspect(&source, &resource).await.unwrap().lock;
        let generation = lock.and_then(|lock| lock.generation.known().cloned());
        if let Some(generation) = generation.filter(|generation| Some(generation) != old) {
            return generation;
        }
    }
}

#[tokio::test]
async fn a_prepared_transaction_is_refused_with_rollback_prepared() {
    // A name that must be quoted; the statement from the answer does end it.
    let server = server().await;
    let url = server.superuser_url();
    let mut session = user(&url).await;
    run(
        &mut session,
        "BEGIN; SELECT pg_advisory_xact_lock(9); PREPARE TRANSACTION 'it''s mine'",
    )
    .await;
    let backend = unlocker(&url, vec![]);
    let (source, resource) = id("advisory", "advisory:postgres:9");
    let Release::Refused { why, remedy } = unlock(&backend, &source, &resource).await else {
        panic!("it was not refused")
    };
    assert!(why.contains("prepared transaction"), "{why}");
    let statement = remedy.split(" (or ").next().unwrap().split(": ").last().unwrap();
    assert_eq!(statement, "ROLLBACK PREPARED 'it''s mine';");
    run(&mut session, statement).await;
    assert_eq!(backend.inspect(&source, &resource).await.unwrap().lock, None);
}

#[tokio::test]
async fn idle_and_pooler_sessions_have_a_warning() {
    // A pooler names itself; an idle session may be one of a pool.
    let server = server().await;
    let url = server.superuser_url();
    let mut pooled = named_user(&url, "PgBouncer 1.22").await;
    run(&mut pooled, "SELECT pg_advisory_lock(1)").await;
    let mut idle = named_user(&url, "billing").await;
    run(&mut idle, "SELECT pg_advisory_lock(2)").await;
    let backend = unlocker(&url, vec![]);
    let warned = radius(&backend, "advisory", "advisory:postgres:1").await.warnings;
    assert!(
        warned.iter().any(|line| line.contains("pooler pgbouncer")),
        "{warned:?}"
    );
    let warned = radius(&backend, "advisory", "advisory:postgres:2").await.warnings;
    assert!(
        warned.iter().any(|line| line.contains("may belong to a pool")),
        "{warned:?}"
    );
    assert!(
        warned.iter().any(|line| line.contains("takes it again")),
        "{warned:?}"
    );
}

const TABLES: &str = "
CREATE SEQUENCE tokens;
ALTER TABLE distributed_locks ALTER fencing_token SET DEFAULT nextval('tokens');
INSERT INTO distributed_locks (resource, owner_id, lease_id) VALUES ('a', 'w', 'l');
CREATE TABLE shedlock (name text PRIMARY KEY, lock_until timestamp, locked_at timestamp, locked_by text);
INSERT INTO shedlock VALUES ('a', '2100-01-01', '2026-01-01', 'w');
CREATE TABLE databasechangeloglock (id int PRIMARY KEY, locked boolean, lockgranted timestamp, lockedby text);
INSERT INTO databasechangeloglock VALUES (1, true, '2026-01-01', 'w');
CREATE TABLE invoices (n int);
INSERT INTO invoices VALUES (1);
CREATE ROLE app LOGIN;
GRANT ALL ON invoices TO app;";

/// The page's roles in a database with a lock of every kind; the superuser's session holds advisory key 99.
async fn documented() -> (testkit::Postgres, PgConnection, PostgresBackend) {
    let server = server().await;
    let mut root = user(&server.superuser_url()).await;
    run(&mut root, "CREATE DATABASE orders").await;
    let mut root = named_user(&server.superuser_url_to("orders"), "root").await;
    run(&mut root, COMMON).await;
    run(&mut root, TABLES).await;
    for block in PAGE.split("```sql\n").skip(1) {
        let grants = block.split("```").next().unwrap();
        if grants.contains("CREATE ROLE") {
            run(&mut root, grants).await;
        }
    }
    run(
        &mut root,
        "GRANT SELECT ON shedlock, databasechangeloglock TO leasehold_watch; SELECT pg_advisory_lock(99)",
    )
    .await;
    let tables = vec![
        common("distributed_locks"),
        lease_table("shedlock", LeaseTablePreset::Shedlock, &[]),
        lease_table("databasechangeloglock", LeaseTablePreset::Liquibase, &[]),
    ];
    let (watch, unlock) = (
        server.url("leasehold_watch", "orders"),
        server.url("leasehold_unlock", "orders"),
    );
    let backend = unlocker_through(&watch, &unlock, tables);
    (server, root, backend)
}

#[tokio::test]
async fn the_documented_unlock_role_has_exactly_its_permissions() {
    // Rows of three kinds, an advisory lock, a blocker; a superuser's session and everything else is out of its reach.
    let (server, mut root, backend) = documented().await;
    let app = server.url("app", "orders");
    let mut holder = named_user(&app, "billing").await;
    run(&mut holder, "SELECT pg_advisory_lock(42)").await;
    let mut blocker = named_user(&app, "blocker").await;
    run(&mut blocker, "BEGIN; UPDATE invoices SET n = 2").await;
    let blocked = later(named_user(&app, "blocked").await, "UPDATE invoices SET n = 3");
    let (source, resource) = id("relation", "relation:orders:public.invoices");
    while backend.inspect(&source, &resource).await.unwrap().lock.is_none() {}
    for (source, resource) in [
        ("table:public.distributed_locks", "a"),
        ("table:public.shedlock", "a"),
        ("table:public.databasechangeloglock", "1"),
        ("advisory", "advisory:orders:42"),
        ("relation", "relation:orders:public.invoices"),
    ] {
        let (source, resource) = id(source, resource);
        assert_eq!(
            unlock(&backend, &source, &resource).await,
            Release::Released,
            "{source}"
        );
    }
    blocked.await.unwrap();
    assert!(!is_alive(&mut holder).await && !is_alive(&mut blocker).await);
    let (source, resource) = id("advisory", "advisory:orders:99");
    let answer = unlock(&backend, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("superuser")),
        "{answer:?}"
    );
    let superusers = pid(&mut root).await;
    let mut role = user(&server.url("leasehold_unlock", "orders")).await;
    for sql in [
        "INSERT INTO distributed_locks (resource) VALUES ('b')".to_owned(),
        "UPDATE distributed_locks SET owner_id = 'me'".to_owned(),
        "TRUNCATE distributed_locks".to_owned(),
        "DELETE FROM shedlock".to_owned(),
        "UPDATE shedlock SET locked_by = 'me'".to_owned(),
        "DELETE FROM databasechangeloglock".to_owned(),
        "SELECT * FROM invoices".to_owned(),
        "CREATE TABLE mine (n int)".to_owned(),
        "CREATE ROLE mine".to_owned(),
        format!("SELECT pg_terminate_backend({superusers})"),
    ] {
        let refused = role.execute(AssertSqlSafe(sql.clone())).await.unwrap_err();
        let code = refused.as_database_error().unwrap().code().unwrap().into_owned();
        assert_eq!(code, "42501", "{sql}: {refused}");
    }
    assert!(is_alive(&mut root).await);
}

#[tokio::test]
async fn a_role_without_permission_gets_the_grant_as_remedy() {
    // Without pg_signal_backend, without pg_read_all_stats.
    let server = server().await;
    let url = server.superuser_url();
    let mut session = named_user(&url, "billing").await;
    run(
        &mut session,
        "CREATE ROLE blind LOGIN; GRANT pg_signal_backend TO blind; CREATE ROLE weak LOGIN;
         GRANT pg_read_all_stats TO weak; SELECT pg_advisory_lock(42)",
    )
    .await;
    for (role, wanted) in [
        ("blind", "GRANT pg_read_all_stats TO blind;"),
        ("weak", "GRANT pg_signal_backend TO weak;"),
    ] {
        let backend = unlocker_through(&url, &server.url(role, "postgres"), vec![]);
        let (source, resource) = id("advisory", "advisory:postgres:42");
        let answer = unlock(&backend, &source, &resource).await;
        assert!(
            matches!(&answer, Release::Refused { remedy, .. } if remedy == wanted),
            "{answer:?}"
        );
    }
    // And where the observing account cannot see sessions, the blast radius is unknown.
    let mut root = user(&url).await;
    run(&mut root, "CREATE ROLE sightless LOGIN").await;
    let sightless = unlocker_through(&server.url("sightless", "postgres"), &url, vec![]);
    let (source, resource) = id("advisory", "advisory:postgres:42");
    let observed = sightless.inspect(&source, &resource).await.unwrap();
    assert!(observed.blast_radius.is_unknown() && observed.lock.unwrap().generation.is_unknown());
    let answer = sightless
        .release(&source, &resource, &Generation::new("pid:1@"), &act())
        .await
        .unwrap();
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("cannot be distinguished")),
        "{answer:?}"
    );
    assert!(is_alive(&mut session).await);
}
