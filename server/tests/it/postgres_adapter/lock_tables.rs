//! Lock tables of other shapes: which rows are held, times as numbers, flags, owners of bytes.

use ::backends::Backend;
use ::config::postgres::{LeaseTableConfig, LeaseTablePreset, LeaseTableRelease, TimeUnit};
use domain::force_release::Release;
use domain::observation::Lifetime;

use super::release::unlocker;
use super::watched_postgres::*;
use crate::support::unlocking::{act, generation, unlock};

/// Mapped as given; every other column of the common shape is absent.
pub(super) fn only(table: &str, columns: &[(&str, &str)]) -> LeaseTableConfig {
    let absent = [
        "owner",
        "lease_id",
        "fencing_token",
        "expires_at",
        "created_at",
        "updated_at",
    ];
    let mut all: Vec<(&str, &str)> = absent.map(|role| (role, "")).to_vec();
    all.retain(|(role, _)| columns.iter().all(|(given, _)| given != role));
    all.extend(columns);
    lease_table(table, LeaseTablePreset::Common, &all)
}

fn jobs() -> LeaseTableConfig {
    LeaseTableConfig {
        held_when: Some("locked_at IS NOT NULL".to_owned()),
        ..only(
            "jobs",
            &[
                ("resource", "id"),
                ("owner", "worker"),
                ("created_at", "locked_at"),
            ],
        )
    }
}

const JOBS: &str = "CREATE TABLE jobs (id int PRIMARY KEY, worker text, locked_at timestamptz, payload text);
    INSERT INTO jobs VALUES (1, 'w1', now(), 'a'), (2, 'w1', NULL, 'b'), (3, NULL, NULL, 'c')";

#[tokio::test]
async fn only_rows_that_are_held_are_locks() {
    // By the condition: a leftover owner without the time is free. A read by name agrees with the scan.
    let server = server().await;
    run(&mut user(&server.superuser_url()).await, JOBS).await;
    let backend = backend(&server.superuser_url(), vec![jobs()]);
    assert_eq!(observe(&backend).await.names_in("table:public.jobs"), ["1"]);
    let (source, free) = id("table:public.jobs", "2");
    assert_eq!(backend.inspect(&source, &free).await.unwrap().lock, None);
}

#[tokio::test]
async fn a_row_without_owner_and_expiry_is_free() {
    // One of the two is enough to be held; a lease id too; an empty text is no owner.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, COMMON).await;
    run(
        &mut user,
        "INSERT INTO distributed_locks (resource, owner_id, lease_id, expires_at) VALUES ('free', NULL, NULL, NULL),
         ('empty', '', NULL, NULL), ('owner', 'w', NULL, NULL), ('lease', NULL, 'l', NULL), ('expiry', NULL, NULL, now())",
    )
    .await;
    let observed = observe(&backend(
        &server.superuser_url(),
        vec![common("distributed_locks")],
    ))
    .await;
    assert_eq!(
        observed.names_in("table:public.distributed_locks"),
        ["expiry", "lease", "owner"]
    );
}

#[tokio::test]
async fn a_wrong_condition_is_a_fault_with_its_remedy() {
    // Unknown column, no boolean, unknown function, a division by zero in a row: no empty list, no lock that vanishes.
    let server = server().await;
    run(&mut user(&server.superuser_url()).await, JOBS).await;
    for (condition, why) in [
        ("lock_at IS NOT NULL", "column \"lock_at\" does not exist"),
        ("worker", "IS TRUE must be type boolean"),
        ("is_held(worker)", "function is_held(text) does not exist"),
        ("1 / (id - 1) > 0", "division by zero"),
    ] {
        let table = LeaseTableConfig {
            held_when: Some(condition.to_owned()),
            ..jobs()
        };
        let backend = backend(&server.superuser_url(), vec![table]);
        let observed = observe(&backend).await;
        let fault = observed.fault("table:public.jobs");
        assert!(
            fault.starts_with("`held_when` of table public.jobs cannot be evaluated: ")
                && fault.contains(why)
                && fault.ends_with("correct `held_when` in the configuration"),
            "{fault}"
        );
        let (source, resource) = id("table:public.jobs", "1");
        let error = backend.inspect(&source, &resource).await.unwrap_err();
        assert!(error.to_string().contains("`held_when`"), "{error}");
    }
}

#[tokio::test]
async fn a_condition_cannot_write() {
    // The session is read-only, whatever the expression calls.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(&mut user, JOBS).await;
    run(
        &mut user,
        "CREATE FUNCTION steal(int) RETURNS boolean LANGUAGE sql VOLATILE AS 'DELETE FROM jobs WHERE id = $1 RETURNING true'",
    )
    .await;
    let table = LeaseTableConfig {
        held_when: Some("steal(id)".to_owned()),
        ..jobs()
    };
    let observed = observe(&backend(&server.superuser_url(), vec![table])).await;
    let fault = observed.fault("table:public.jobs");
    assert!(
        fault.contains("`held_when`") && fault.contains("read-only transaction"),
        "{fault}"
    );
}

#[tokio::test]
async fn an_expiry_may_be_a_number() {
    // Each numeric type in its unit, an hour ahead and rounded; a number beyond every year; a unit that is not given.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    let kinds = [
        ("int4", TimeUnit::Seconds, 1),
        ("int8", TimeUnit::Milliseconds, 1_000),
        ("numeric", TimeUnit::Seconds, 1),
        ("float8", TimeUnit::Milliseconds, 1_000),
    ];
    for (kind, unit, each) in kinds {
        run(
            &mut user,
            &format!(
                "DROP TABLE IF EXISTS l; CREATE TABLE l (key text PRIMARY KEY, owner text, until {kind});
                 INSERT INTO l VALUES ('a', 'w', (extract(epoch FROM now()) + 3600) * {each})"
            ),
        )
        .await;
        let table = only(
            "l",
            &[
                ("resource", "key"),
                ("owner", "owner"),
                ("lease_id", "owner"),
                ("expires_at", "until"),
            ],
        );
        let with = |unit| LeaseTableConfig {
            expires_unit: unit,
            release: Some(LeaseTableRelease::Expire),
            ..table.clone()
        };
        let fault = observe(&backend(&server.superuser_url(), vec![with(None)])).await;
        assert!(
            fault.fault("table:public.l").contains("set `expires_unit` to"),
            "{kind}"
        );
        let backend = unlocker(&server.superuser_url(), vec![with(Some(unit))]);
        let observed = observe(&backend).await;
        let lock = observed.lock("table:public.l", "a");
        assert!(
            matches!(
                lock.lifetime,
                Lifetime::Leased {
                    remaining_ms: 3_500_000..=3_601_000,
                    ..
                }
            ),
            "{kind}: {lock:?}"
        );
        let (source, resource) = id("table:public.l", "a");
        assert_eq!(
            unlock(&backend, &source, &resource).await,
            Release::Released,
            "{kind}"
        );
        assert_eq!(unlock_again(&backend).await, Release::AlreadyFree, "{kind}");
    }
}

#[tokio::test]
async fn an_expiry_beyond_every_year_is_no_ttl() {
    // A number that no timestamp can hold: one row of a table must not fail the others.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(
        &mut user,
        "CREATE TABLE l (key text PRIMARY KEY, owner text, until float8); INSERT INTO l VALUES ('a', 'w', 1e300)",
    )
    .await;
    let table = LeaseTableConfig {
        expires_unit: Some(TimeUnit::Milliseconds),
        ..only(
            "l",
            &[("resource", "key"), ("owner", "owner"), ("expires_at", "until")],
        )
    };
    let observed = observe(&backend(&server.superuser_url(), vec![table])).await;
    let lock = observed.lock("table:public.l", "a");
    assert!(
        matches!(&lock.lifetime, Lifetime::NoTtl { why } if why.contains("infinitely far")),
        "{lock:?}"
    );
}

/// The holding that was expired a moment ago.
async fn unlock_again(backend: &::backends::postgres::PostgresBackend) -> Release {
    let (source, resource) = id("table:public.l", "a");
    let observed = generation(backend, &source, &resource).await;
    backend
        .release(&source, &resource, &observed, &act())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_flag_may_be_of_any_type() {
    // Set and not set in each type; a clear takes it back.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    for (kind, up, down, cleared) in [
        ("boolean", "true", "false", "false"),
        ("int NOT NULL", "1", "0", "0"),
        ("text", "'Y'", "'n'", "NULL"),
        ("varchar(5) NOT NULL", "'true'", "''", "''"),
        ("timestamptz", "now()", "NULL", "NULL"),
    ] {
        run(
            &mut user,
            &format!(
                "DROP TABLE IF EXISTS m; CREATE TABLE m (id int PRIMARY KEY, lock {kind}, lease uuid);
                 INSERT INTO m VALUES (1, {up}, gen_random_uuid()), (2, {down}, gen_random_uuid())"
            ),
        )
        .await;
        let table = LeaseTableConfig {
            release: Some(LeaseTableRelease::Clear),
            ..only(
                "m",
                &[("resource", "id"), ("locked", "lock"), ("lease_id", "lease")],
            )
        };
        let backend = unlocker(&server.superuser_url(), vec![table]);
        assert_eq!(
            observe(&backend).await.names_in("table:public.m"),
            ["1"],
            "{kind}"
        );
        let (source, resource) = id("table:public.m", "1");
        assert_eq!(
            unlock(&backend, &source, &resource).await,
            Release::Released,
            "{kind}"
        );
        let row: (bool, bool) = sqlx::query_as(sqlx::AssertSqlSafe(format!(
            "SELECT lock IS NOT DISTINCT FROM {cleared}, lease IS NULL FROM m WHERE id = 1"
        )))
        .fetch_one(&mut user)
        .await
        .unwrap();
        assert_eq!(row, (true, true), "{kind}");
    }
}

#[tokio::test]
async fn an_owner_of_bytes_is_hexadecimal_and_its_row_is_released() {
    // The owner is unique per holding and so the lease id; the next holding is not touched.
    let server = server().await;
    let mut user = user(&server.superuser_url()).await;
    run(
        &mut user,
        "CREATE TABLE b (name text PRIMARY KEY, holder bytea, until timestamptz);
         INSERT INTO b VALUES ('a', '\\xdead0001', now() + interval '1 h')",
    )
    .await;
    let table = only(
        "b",
        &[
            ("resource", "name"),
            ("owner", "holder"),
            ("lease_id", "holder"),
            ("expires_at", "until"),
        ],
    );
    let backend = unlocker(&server.superuser_url(), vec![table]);
    let (source, resource) = id("table:public.b", "a");
    let lock = backend.inspect(&source, &resource).await.unwrap().lock.unwrap();
    assert_eq!(lock.owner.known().unwrap().as_str(), "0xdead0001");
    let old = generation(&backend, &source, &resource).await;
    run(&mut user, "UPDATE b SET holder = '\\xdead0002'").await;
    let answer = backend.release(&source, &resource, &old, &act()).await.unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
}
