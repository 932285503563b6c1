//! Forced unlocks of lease tables: the right statement for each kind of row, guarded by every column that identifies a
//! holding, and never the next holder's.

mod races;

use ::backends::postgres::PostgresBackend;
use ::backends::{Backend, no_release};
use ::config::postgres::{LeaseTableConfig, LeaseTablePreset, LeaseTableRelease, PostgresConfig};
use domain::force_release::Release;
use sqlx::{AssertSqlSafe, PgConnection};

use super::watched_postgres::*;
use crate::support::unlocking::{act, generation, unlock};

const LOCKS: &str = "table:public.distributed_locks";

/// An adapter whose two accounts are both superusers.
pub(super) fn unlocker(url: &str, lease_tables: Vec<LeaseTableConfig>) -> PostgresBackend {
    unlocker_through(url, url, lease_tables)
}

pub(super) fn unlocker_through(
    url: &str,
    unlock_url: &str,
    lease_tables: Vec<LeaseTableConfig>,
) -> PostgresBackend {
    backend_of(&PostgresConfig {
        unlock_url: Some(unlock_url.into()),
        ..postgres_config(url, lease_tables)
    })
}

async fn number(session: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned()))
        .fetch_one(session)
        .await
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn common_by(release: LeaseTableRelease) -> LeaseTableConfig {
    LeaseTableConfig {
        stale_after: None,
        release: Some(release),
        ..common("distributed_locks")
    }
}

const ROW: &str = "INSERT INTO distributed_locks VALUES
    ('a', 'w1', 'l-1', 41, now() + interval '1 hour', now(), now()),
    ('b', 'w1', 'l-2', 42, now() + interval '1 hour', now(), now())";

#[tokio::test]
async fn a_common_row_is_deleted_or_expired_by_its_token_source() {
    // By configuration; by detection: with a sequence behind the token, without a token, with a token of the row's
    // own or in a column that is not mapped, which must not be lost. Other rows stay each time.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    let no_token = lease_table(
        "distributed_locks",
        LeaseTablePreset::Common,
        &[("fencing_token", "")],
    );
    let draw = "CREATE SEQUENCE tokens; ALTER TABLE distributed_locks ALTER fencing_token SET DEFAULT nextval('tokens')";
    for (table, change, rows_left) in [
        (common_by(LeaseTableRelease::Delete), "", 1),
        (common_by(LeaseTableRelease::Expire), "", 2),
        (common("distributed_locks"), "", 2),
        (no_token.clone(), "", 2),
        (
            no_token,
            "ALTER TABLE distributed_locks DROP COLUMN fencing_token",
            1,
        ),
        (common("distributed_locks"), draw, 1),
    ] {
        run(&mut user, COMMON).await;
        run(&mut user, &format!("{ROW}; {change}")).await;
        let backend = unlocker(&server.superuser_url(), vec![table]);
        assert_eq!(no_release(&backend), None);
        let (source, resource) = id(LOCKS, "a");
        let observed = backend.inspect(&source, &resource).await.unwrap();
        let radius = observed.blast_radius.known().unwrap();
        assert!(radius.dies.is_empty(), "{radius:?}");
        let warned = radius.warnings.iter().any(|line| line.contains("expired"));
        assert_eq!(warned, rows_left == 2, "{radius:?}");
        let observed = generation(&backend, &source, &resource).await;
        let release = || async {
            backend
                .release(&source, &resource, &observed, &act())
                .await
                .unwrap()
        };
        assert_eq!(release().await, Release::Released);
        assert_eq!(
            number(&mut user, "SELECT count(*) FROM distributed_locks").await,
            rows_left
        );
        let live =
            "SELECT count(*) FROM distributed_locks WHERE expires_at > clock_timestamp() AND resource = 'b'";
        assert_eq!(number(&mut user, live).await, 1);
        assert_eq!(release().await, Release::AlreadyFree);
        if rows_left == 2 {
            let token = "SELECT fencing_token FROM distributed_locks WHERE resource = 'a'";
            assert_eq!(number(&mut user, token).await, 41);
        }
        run(&mut user, "DROP TABLE distributed_locks").await;
    }
}

#[tokio::test]
async fn a_row_with_the_only_token_copy_is_not_deleted() {
    // No safe statement exists: the blast radius is unknown with the remedy, and the unlock is refused with it.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, COMMON).await;
    run(&mut user, ROW).await;
    let table = lease_table(
        "distributed_locks",
        LeaseTablePreset::Common,
        &[("expires_at", "")],
    );
    let backend = unlocker(&server.superuser_url(), vec![table]);
    let (source, resource) = id(LOCKS, "a");
    let observed = backend.inspect(&source, &resource).await.unwrap();
    assert!(
        observed
            .blast_radius
            .why()
            .unwrap()
            .contains("release = \"delete\"")
    );
    let answer = unlock(&backend, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { remedy, .. } if remedy.contains("delete")),
        "{answer:?}"
    );
    assert_eq!(
        number(&mut user, "SELECT count(*) FROM distributed_locks").await,
        2
    );
}

#[tokio::test]
async fn any_changed_generation_column_prevents_the_release() {
    // Between review and release one column changes: lease id, token, or owner and a microsecond where there is no
    // lease id. A renewal changes none of them.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, COMMON).await;
    let no_id = || {
        lease_table(
            "distributed_locks",
            LeaseTablePreset::Common,
            &[("lease_id", ""), ("fencing_token", "")],
        )
    };
    let by_token = lease_table("distributed_locks", LeaseTablePreset::Common, &[("lease_id", "")]);
    let created = "created_at = created_at + interval '1 microsecond'";
    for (table, change) in [
        (common_by(LeaseTableRelease::Delete), "lease_id = 'l-9'"),
        (
            common_by(LeaseTableRelease::Delete),
            "fencing_token = fencing_token + 1",
        ),
        (common_by(LeaseTableRelease::Expire), "lease_id = 'l-9'"),
        (no_id(), created),
        (no_id(), "owner_id = 'w2'"),
        (by_token, "fencing_token = 99"),
    ] {
        run(&mut user, "TRUNCATE distributed_locks").await;
        run(&mut user, ROW).await;
        let backend = unlocker(&server.superuser_url(), vec![table]);
        let (source, resource) = id(LOCKS, "a");
        let old = generation(&backend, &source, &resource).await;
        let renew = "UPDATE distributed_locks SET updated_at = clock_timestamp(), expires_at = now() + interval '2 hours'";
        run(&mut user, renew).await;
        assert_eq!(generation(&backend, &source, &resource).await, old, "{change}");
        run(
            &mut user,
            &format!("UPDATE distributed_locks SET {change} WHERE resource = 'a'"),
        )
        .await;
        let answer = backend.release(&source, &resource, &old, &act()).await.unwrap();
        let now = generation(&backend, &source, &resource).await;
        assert!(
            matches!(&answer, Release::HolderChanged { now: holding } if holding.generation.known() == Some(&now)),
            "{change}: {answer:?}"
        );
        let live = "SELECT count(*) FROM distributed_locks WHERE expires_at > clock_timestamp()";
        assert_eq!(number(&mut user, live).await, 2, "{change}");
        assert_eq!(
            unlock(&backend, &source, &resource).await,
            Release::Released,
            "{change}"
        );
    }
}

#[tokio::test]
async fn a_row_with_a_new_holder_after_a_lock_wait_is_not_touched() {
    // The act itself waits for the row's lock, which the next owner holds; then that one commits.
    let server = server().await;
    let mut user = named_user(&server.superuser_url(), "next").await;
    run(&mut user, COMMON).await;
    run(&mut user, ROW).await;
    let url = server.superuser_url();
    let backend = unlocker(&url, vec![common_by(LeaseTableRelease::Delete)]);
    let (source, resource) = id(LOCKS, "a");
    let old = generation(&backend, &source, &resource).await;
    run(
        &mut user,
        "BEGIN; UPDATE distributed_locks SET owner_id = 'w2', lease_id = 'l-9' WHERE resource = 'a'",
    )
    .await;
    let mut watcher = super::watched_postgres::user(&url).await;
    let taken = async {
        let waits =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'DELETE%'";
        while number(&mut watcher, waits).await == 0 {}
        run(&mut user, "COMMIT").await;
    };
    let why = act();
    let (answer, ()) = futures::join!(backend.release(&source, &resource, &old, &why), taken);
    assert!(
        matches!(&answer, Ok(Release::HolderChanged { now }) if now.owner_id.known().unwrap().as_str() == "w2"),
        "{answer:?}"
    );
    assert_eq!(
        number(&mut user, "SELECT count(*) FROM distributed_locks").await,
        2
    );
    // A wait for the row's lock that times out: refused.
    run(&mut user, "BEGIN; SELECT * FROM distributed_locks FOR UPDATE").await;
    let answer = unlock(&backend, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("locked the row")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn shedlock_and_liquibase_rows_are_freed_not_deleted() {
    // ShedLock in both of its time types and renamed; then its clients can acquire at once.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    for kind in ["timestamp", "timestamptz"] {
        let create = format!(
            "CREATE TABLE shedlock (name varchar(64) PRIMARY KEY, until {kind} NOT NULL, locked_at {kind} NOT NULL,
             locked_by varchar(255) NOT NULL)"
        );
        run(&mut user, &create).await;
        let now = if kind == "timestamp" {
            "timezone('utc', now())"
        } else {
            "now()"
        };
        let insert =
            format!("INSERT INTO shedlock VALUES ('report', {now} + interval '1 hour', {now}, 'host-1')");
        run(&mut user, &insert).await;
        let table = lease_table("shedlock", LeaseTablePreset::Shedlock, &[("expires_at", "until")]);
        let backend = unlocker(&server.superuser_url(), vec![table]);
        let (source, resource) = id("table:public.shedlock", "report");
        let old = generation(&backend, &source, &resource).await;
        // The next run of the same host.
        run(
            &mut user,
            "UPDATE shedlock SET locked_at = locked_at + interval '1 second'",
        )
        .await;
        let answer = backend.release(&source, &resource, &old, &act()).await.unwrap();
        assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
        assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
        assert_eq!(backend.inspect(&source, &resource).await.unwrap().lock, None);
        let take = format!(
            "WITH taken AS (UPDATE shedlock SET until = {now} + interval '1 hour', locked_at = {now}, locked_by = 'host-2'
             WHERE name = 'report' AND until <= {} RETURNING 1) SELECT count(*) FROM taken",
            now.replace("now()", "clock_timestamp()")
        );
        assert_eq!(number(&mut user, &take).await, 1);
        run(&mut user, "DROP TABLE shedlock").await;
    }
    run(
        &mut user,
        "CREATE TABLE databasechangeloglock (id int PRIMARY KEY, locked boolean NOT NULL, lockgranted timestamp, lockedby
         varchar(255)); INSERT INTO databasechangeloglock VALUES (1, true, '2026-04-01 12:00', 'ci (10.0.0.1)')",
    )
    .await;
    let table = lease_table("databasechangeloglock", LeaseTablePreset::Liquibase, &[]);
    let backend = unlocker(&server.superuser_url(), vec![table]);
    let (source, resource) = id("table:public.databasechangeloglock", "1");
    let observed = generation(&backend, &source, &resource).await;
    let release = || async {
        backend
            .release(&source, &resource, &observed, &act())
            .await
            .unwrap()
    };
    assert_eq!(release().await, Release::Released);
    assert_eq!(release().await, Release::AlreadyFree);
    let free = "SELECT count(*) FROM databasechangeloglock WHERE NOT locked AND lockedby IS NULL AND lockgranted IS NULL";
    assert_eq!(number(&mut user, free).await, 1);
}

#[tokio::test]
async fn release_without_account_or_rights_is_refused_with_a_reason() {
    // No `unlock_url`; one to another database; an account that may not delete; an account and a database that
    // do not exist.
    let server = server().await;
    let url = server.superuser_url();
    let mut user = user(&url).await;
    run(&mut user, COMMON).await;
    run(&mut user, ROW).await;
    run(
        &mut user,
        "CREATE ROLE reader LOGIN; GRANT SELECT ON distributed_locks TO reader",
    )
    .await;
    run(&mut user, "CREATE DATABASE elsewhere").await;
    let mut other = super::watched_postgres::user(&server.superuser_url_to("elsewhere")).await;
    run(&mut other, COMMON).await;
    let (source, resource) = id(LOCKS, "a");
    let table = || vec![common_by(LeaseTableRelease::Delete)];
    let none = backend(&url, table());
    assert!(no_release(&none).unwrap().contains("unlock_url"));
    for (backend, wanted) in [
        (none, "unlock_url"),
        (
            unlocker_through(&url, &server.superuser_url_to("elsewhere"), table()),
            "same server and database",
        ),
        (
            unlocker_through(&url, &server.url("reader", "postgres"), table()),
            "GRANT SELECT, DELETE ON public.distributed_locks TO reader;",
        ),
    ] {
        let answer = unlock(&backend, &source, &resource).await;
        assert!(
            matches!(&answer, Release::Refused { why, remedy } if why.contains(wanted) || remedy.contains(wanted)),
            "{answer:?}"
        );
    }
    for absent in [
        server.url("absent", "postgres"),
        server.superuser_url_to("absent"),
    ] {
        let backend = unlocker_through(&url, &absent, table());
        let seen = generation(&backend, &source, &resource).await;
        let released = backend.release(&source, &resource, &seen, &act()).await;
        let error = released.unwrap_err();
        assert!(error.remedy().contains("`unlock_url`"), "{error:?}");
    }
    assert_eq!(
        number(&mut user, "SELECT count(*) FROM distributed_locks").await,
        2
    );
}
