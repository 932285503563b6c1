//! Lease tables in the common shape.

use std::time::Duration;

use ::backends::postgres::PostgresBackend;
use ::backends::{Backend, Budget};
use ::config::postgres::LeaseTablePreset;
use ::testkit::Postgres;
use domain::names::Resource;
use domain::observation::{Coverage, Lifetime, ObservedLock};
use domain::reported::Reported;
use domain::safety::SafetyClass;

use super::watched_postgres::*;

const SOURCE: &str = "table:public.distributed_locks";

fn remaining_ms(lifetime: &Lifetime) -> i64 {
    match lifetime {
        Lifetime::Leased { remaining_ms, .. } => *remaining_ms,
        other => panic!("{other:?}"),
    }
}

fn ttl_ms(lock: &ObservedLock) -> Option<i64> {
    match &lock.lifetime {
        Lifetime::Leased { ttl_ms, .. } => ttl_ms.known().copied(),
        other => panic!("{other:?}"),
    }
}

/// One live, one renewed, one expired, one without times, one without an owner, one at both ends of time.
const ROWS: &str = "
INSERT INTO distributed_locks VALUES
 ('billing', 'worker-1', 'l-1', 41, now() + interval '30 s', now(), now()),
 ('renewed', 'worker-2', 'l-2', 7, now() + interval '40 s', now() - interval '60 s', now() - interval '20 s'),
 ('dead', 'worker-3', 'l-3', 8, now() - interval '10 s', now() - interval '40 s', NULL),
 ('immortal', 'worker-6', NULL, NULL, NULL, NULL, NULL),
 ('anonymous', NULL, 'l-6', NULL, now() + interval '30 s', NULL, NULL),
 ('far', 'w', 'l-4', -5, 'infinity', '-infinity', now()),
 ('past', 'w', 'l-5', 9, '-infinity', now(), now())";

async fn rows() -> (Postgres, PostgresBackend) {
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, COMMON).await;
    run(&mut user, ROWS).await;
    let backend = backend(&server.superuser_url(), vec![common("distributed_locks")]);
    (server, backend)
}

#[tokio::test]
async fn rows_of_the_common_table_have_owner_token_lease_and_time() {
    // The time left is by the server's clock, and negative once expired; a NULL is unknown, with the reason.
    let (_server, backend) = rows().await;
    let observed = observe(&backend).await;
    assert!(
        observed
            .pass
            .sources
            .iter()
            .all(|source| source.coverage.is_complete()),
        "{:?}",
        observed.pass
    );
    let lock = observed.lock(SOURCE, "billing");
    assert_eq!(lock.owner.known().unwrap().as_str(), "worker-1");
    assert_eq!(lock.fencing_token.known().unwrap().number(), 41);
    assert_eq!(lock.lease_id.known().unwrap().as_ref(), "l-1");
    assert_eq!(lock.generation.known().unwrap().as_str(), "lease:l-1#41");
    assert!(
        (20_000..=30_000).contains(&remaining_ms(&lock.lifetime)),
        "{lock:?}"
    );
    assert_eq!(ttl_ms(lock), Some(30_000));
    assert!(
        lock.acquired_at.is_known() && lock.renewed_at.is_unknown(),
        "{lock:?}"
    );

    let renewed = observed.lock(SOURCE, "renewed");
    assert_eq!(ttl_ms(renewed), Some(60_000));
    assert!(renewed.renewed_at.known().unwrap() > renewed.acquired_at.known().unwrap());
    assert!(remaining_ms(&observed.lock(SOURCE, "dead").lifetime) <= -10_000);
    assert!(remaining_ms(&observed.lock(SOURCE, "past").lifetime) < 0);
    assert_eq!(ttl_ms(observed.lock(SOURCE, "past")), None);

    let immortal = observed.lock(SOURCE, "immortal");
    assert!(
        matches!(&immortal.lifetime, Lifetime::NoTtl { why } if why == "expires_at is NULL"),
        "{immortal:?}"
    );
    let anonymous = observed.lock(SOURCE, "anonymous");
    assert_eq!(anonymous.owner.why(), Some("owner_id is NULL"));
    assert!(immortal.fencing_token.is_unknown() && immortal.generation.is_unknown());
    let far = observed.lock(SOURCE, "far");
    assert!(matches!(far.lifetime, Lifetime::NoTtl { .. }), "{far:?}");
    assert_eq!(far.fencing_token.why(), Some("fencing_token is no token: -5"));
    let reading = observed.pass.clock.known().unwrap();
    assert!(reading.offset_ms().abs() <= reading.error_ms + 50, "{reading:?}");
}

#[tokio::test]
async fn the_detail_of_a_row_is_its_record_in_the_tables_order() {
    // Every column with its text; a name that is not there is no lock and no error.
    let (_server, backend) = rows().await;
    let (source, resource) = id(SOURCE, "billing");
    assert_eq!(backend.safety(&source).class, SafetyClass::Correctness);
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let names: Vec<&str> = detail.raw.iter().map(|field| field.name.as_str()).collect();
    let expected = [
        "resource",
        "owner_id",
        "lease_id",
        "fencing_token",
        "expires_at",
        "created_at",
        "updated_at",
    ];
    assert_eq!(names, expected);
    assert_eq!(detail.raw[1].value, "worker-1");
    assert_eq!(detail.lock.unwrap().resource, resource);
    let nobody = backend.inspect(&source, &Resource::from("nobody")).await.unwrap();
    assert_eq!(nobody.lock, None);
    let (source, resource) = id(SOURCE, "immortal");
    assert_eq!(
        backend.inspect(&source, &resource).await.unwrap().raw[2].value,
        "NULL"
    );
}

#[tokio::test]
async fn mapped_columns_of_other_types_are_read_as_well() {
    // A quoted schema, table and columns; times without zone; tokens as numeric, text and nonsense; a uuid as lease.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, r#"CREATE SCHEMA "Ops"; CREATE TABLE "Ops"."My.""Locks" (
        "Who" varchar(40), "What is it" varchar(40) UNIQUE, gen uuid, tok numeric(20, 2), until timestamp, secret text)"#)
        .await;
    run(
        &mut user,
        r#"INSERT INTO "Ops"."My.""Locks" VALUES
           ('me', 'job', '00000000-0000-0000-0000-000000000001', 18446744073709551, (now() AT TIME ZONE 'UTC') + interval '1 min', 's');
           CREATE VIEW "Ops".texts AS SELECT "What is it" AS resource, 'soon' AS tok, until FROM "Ops"."My.""Locks""#,
    )
    .await;
    let mapping = [
        ("resource", "What is it"),
        ("owner", "Who"),
        ("lease_id", "GEN"),
        ("fencing_token", "tok"),
        ("expires_at", "until"),
        ("created_at", ""),
        ("updated_at", ""),
    ];
    let quoted = lease_table(r#""Ops"."My.""Locks""#, LeaseTablePreset::Common, &mapping);
    let text_mapping = [
        ("owner", ""),
        ("lease_id", ""),
        ("fencing_token", "tok"),
        ("expires_at", "until"),
        ("created_at", ""),
        ("updated_at", ""),
    ];
    let view = lease_table("Ops.texts", LeaseTablePreset::Common, &text_mapping);
    let backend = backend(&server.superuser_url(), vec![quoted, view]);
    let observed = observe(&backend).await;
    let lock = observed.lock(r#"table:Ops.My."Locks"#, "job");
    assert_eq!(
        lock.fencing_token.known().unwrap().number(),
        18_446_744_073_709_551
    );
    assert_eq!(
        lock.lease_id.known().unwrap().as_ref(),
        "00000000-0000-0000-0000-000000000001"
    );
    assert!((50_000..=60_000).contains(&remaining_ms(&lock.lifetime)));
    assert!(matches!(
        &lock.lifetime,
        Lifetime::Leased {
            ttl_ms: Reported::Unknown(_),
            ..
        }
    ));
    let view = observed.lock("table:Ops.texts", "job");
    assert_eq!(view.fencing_token.why(), Some("tok is no token: soon"));
    assert!(view.owner.is_unknown() && view.lease_id.is_absent());
}

#[tokio::test]
async fn hostile_names_are_unchanged_and_can_be_looked_up() {
    // 10 KB, HTML, control characters, SQL, quotes, LIKE signs; a NULL and an oversized name make it partial.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(
        &mut user,
        "CREATE TABLE distributed_locks (resource text, owner_id text, lease_id text, fencing_token bigint,
        expires_at timestamptz, created_at timestamptz, updated_at timestamptz)",
    )
    .await;
    let long = "x".repeat(10 * 1024);
    let names = [
        long.as_str(),
        "<script>alert(1)</script>",
        "a\u{1b}[31m\r\n\u{202e}b",
        "'; DROP TABLE distributed_locks; --",
        "100%_\\x41",
        "",
        "Ünï\u{1f512}",
    ];
    for name in names {
        sqlx::query(
            "INSERT INTO distributed_locks VALUES ($1, $1, $1, 1, now() + interval '1 h', now(), now())",
        )
        .bind(name)
        .execute(&mut user)
        .await
        .unwrap();
    }
    let backend = backend(&server.superuser_url(), vec![common("public.distributed_locks")]);
    let observed = observe(&backend).await;
    assert_eq!(observed.locks.len(), names.len());
    for name in names {
        let (source, resource) = id(SOURCE, name);
        let found = backend.inspect(&source, &resource).await.unwrap().lock.unwrap();
        assert_eq!(found.resource, resource);
        assert!(found.owner.known().unwrap().as_str().chars().count() <= 1024);
    }
    assert!(
        observed.lock(SOURCE, &long).generation.is_unknown()
            || observed.lock(SOURCE, &long).lease_id.is_unknown()
    );
    run(
        &mut user,
        "INSERT INTO distributed_locks (resource, owner_id) VALUES (NULL, 'w'), (repeat('y', 70000), 'w')",
    )
    .await;
    let observed = observe(&backend).await;
    assert!(
        observed.fault(SOURCE).starts_with("2 rows"),
        "{:?}",
        observed.fault(SOURCE)
    );
    assert_eq!(observed.read_sources, [SOURCE], "no lock has such a name");
    assert_eq!(observed.locks.len(), names.len());
}

#[tokio::test]
async fn a_refresh_reads_the_named_rows_and_reports_missing_ones() {
    // Names of two tables and one that is not there; a name that is not UTF-8 cannot be there.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, COMMON).await;
    run(
        &mut user,
        "INSERT INTO distributed_locks (resource, owner_id) VALUES ('a', 'w'), ('b', 'w'), ('c', 'w')",
    )
    .await;
    run(&mut user, "SELECT pg_advisory_lock(5)").await;
    let backend = backend(&server.superuser_url(), vec![common("distributed_locks")]);
    let binary = (id(SOURCE, "a").0, Resource::from_bytes(b"\xff"));
    let names = [
        id(SOURCE, "a"),
        id(SOURCE, "gone"),
        binary.clone(),
        id("advisory", "advisory:postgres:5"),
        id("advisory", "advisory:postgres:6"),
    ];
    let mut kept = BatchSink::default();
    backend.refresh(&names, &mut kept).await.unwrap();
    let mut found: Vec<String> = kept
        .batches
        .iter()
        .flat_map(|batch| &batch.locks)
        .map(|lock| lock.resource.text())
        .collect();
    found.sort();
    assert_eq!(found, ["a", "advisory:postgres:5"]);
    let gone: Vec<_> = kept.batches.iter().flat_map(|batch| batch.gone.clone()).collect();
    assert_eq!(gone.len(), 3, "{gone:?}");
    assert!(gone.contains(&binary) && gone.contains(&id(SOURCE, "gone")));
}

#[tokio::test]
async fn many_rows_arrive_in_batches_until_the_scan_timeout() {
    // Every row once. With a scan timeout of zero the scan is partial and reports how much it has read.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, COMMON).await;
    run(
        &mut user,
        "INSERT INTO distributed_locks SELECT 'tenant_' || n % 100 || ':job:' || n, 'worker-' || n % 50,
        md5(n::text), n, now() + interval '1 h', now(), now() FROM generate_series(1, 20000) n; ANALYZE",
    )
    .await;
    let backend = backend(&server.superuser_url(), vec![common("distributed_locks")]);
    let observed = observe(&backend).await;
    assert_eq!(observed.locks.len(), 20_000);
    assert!(observed.batches >= 20);

    let mut kept = BatchSink::default();
    let pass = backend
        .observe(
            Budget {
                time_max: Duration::from_millis(30),
            },
            &mut kept,
        )
        .await
        .unwrap();
    let source = pass
        .sources
        .iter()
        .find(|pass| pass.source.as_str() == SOURCE)
        .unwrap();
    let Coverage::Partial {
        seen: observed, of, ..
    } = &source.coverage
    else {
        panic!("{source:?}")
    };
    assert!(
        *observed < 20_000 && (*observed == 0 || *of == Some(20_000)),
        "{source:?}"
    );
    assert_eq!(observe(&backend).await.locks.len(), 20_000);
}
