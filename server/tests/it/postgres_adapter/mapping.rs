//! Tables that are not there, not ours to read, or not shaped as configured: each a fault of its own source.

use ::backends::postgres::connect;
use ::backends::{Backend, BackendError};
use ::config::postgres::LeaseTablePreset;
use domain::observation::Coverage;
use runtime::clock::Clock;

use super::watched_postgres::*;

const WORLD: &str = "
INSERT INTO distributed_locks (resource, owner_id) VALUES ('fine', 'w');
CREATE TABLE fenced (resource text, owner_id text, lease_id text, fence_token bigint, expires_at timestamptz,
  created_at timestamptz, updated_at timestamptz);
CREATE TABLE typed (resource text, owner_id text, lease_id text, fencing_token bigint, expires_at bigint,
  created_at timestamptz, updated_at timestamptz);
CREATE TABLE secret AS TABLE distributed_locks;
CREATE TABLE partly AS TABLE distributed_locks;
CREATE SCHEMA vault;
CREATE TABLE vault.locks AS TABLE distributed_locks;
CREATE ROLE watcher LOGIN;
GRANT SELECT ON distributed_locks, fenced, typed, vault.locks TO watcher;
GRANT SELECT (resource, owner_id, lease_id, fencing_token, expires_at, created_at) ON partly TO watcher";

/// Configured table, its source, and the expected error.
const WRONG: [(&str, &str, &str); 7] = [
    (
        "distributed_lock",
        "table:public.distributed_lock",
        "table public.distributed_lock does not exist in this database; the nearest is public.distributed_locks: \
         correct `table` in the configuration",
    ),
    (
        "shop.typed",
        "table:shop.typed",
        "table shop.typed does not exist in this database; the nearest is public.typed: correct `table` in the \
         configuration",
    ),
    (
        "fenced",
        "table:public.fenced",
        "table public.fenced has no column fencing_token for `fencing_token`; the nearest is fence_token: set \
         columns = { fencing_token = \"fence_token\" }, or \"\" without one",
    ),
    (
        "typed",
        "table:public.typed",
        "column expires_at of table public.typed is bigint, a time as a number for `expires_at`: set `expires_unit` to \
         \"seconds\" or \"milliseconds\"",
    ),
    (
        "secret",
        "table:public.secret",
        "this account may not read public.secret: GRANT SELECT ON public.secret TO watcher;",
    ),
    (
        "vault.locks",
        "table:vault.locks",
        "this account may not use schema vault: GRANT USAGE ON SCHEMA vault TO watcher;",
    ),
    (
        "partly",
        "table:public.partly",
        "this account may not read public.partly: GRANT SELECT ON public.partly TO watcher;",
    ),
];

#[tokio::test]
async fn each_wrong_table_is_named_with_a_remedy() {
    // All in one backend, with one good table that is read all the same. The fixes work without a restart.
    let server = server().await;
    let mut root = user(&server.superuser_url()).await;
    run(&mut root, COMMON).await;
    run(&mut root, WORLD).await;
    let mut tables: Vec<_> = WRONG.iter().map(|(table, _, _)| common(table)).collect();
    tables.push(common("distributed_locks"));
    let backend = backend(&server.url("watcher", "postgres"), tables);
    let observed = observe(&backend).await;
    assert_eq!(observed.names_in("table:public.distributed_locks"), ["fine"]);
    for (_, source, why) in WRONG {
        assert_eq!(observed.fault(source), why);
        assert!(matches!(
            observed.source(source).coverage,
            Coverage::Partial { seen: 0, .. }
        ));
        let (source, resource) = id(source, "fine");
        let error = backend.inspect(&source, &resource).await.unwrap_err();
        assert_eq!(error.to_string(), why);
    }
    run(
        &mut root,
        "GRANT SELECT ON public.secret TO watcher; GRANT USAGE ON SCHEMA vault TO watcher",
    )
    .await;
    run(
        &mut root,
        "ALTER TABLE fenced RENAME fence_token TO fencing_token",
    )
    .await;
    let observed = observe(&backend).await;
    for source in ["table:public.secret", "table:vault.locks", "table:public.fenced"] {
        assert!(
            observed.source(source).coverage.is_complete(),
            "{:?}",
            observed.source(source)
        );
    }
}

#[tokio::test]
async fn an_altered_or_dropped_table_is_detected() {
    // No plan outlives a pass: a column that vanishes is a fault in the next one, a new one is in the record.
    let server = server().await;
    let mut root = user(&server.superuser_url()).await;
    run(&mut root, COMMON).await;
    run(
        &mut root,
        "INSERT INTO distributed_locks (resource, owner_id) VALUES ('a', 'w')",
    )
    .await;
    let backend = backend(&server.superuser_url(), vec![common("distributed_locks")]);
    let (source, resource) = id("table:public.distributed_locks", "a");
    assert_eq!(backend.inspect(&source, &resource).await.unwrap().raw.len(), 7);
    run(
        &mut root,
        "ALTER TABLE distributed_locks ADD COLUMN note text DEFAULT 'n', ALTER resource TYPE varchar(99)",
    )
    .await;
    let raw = backend.inspect(&source, &resource).await.unwrap().raw;
    assert_eq!((raw.len(), raw[7].value.as_str()), (8, "n"));
    assert_eq!(observe(&backend).await.locks.len(), 1);
    run(&mut root, "ALTER TABLE distributed_locks DROP COLUMN owner_id").await;
    assert!(
        observe(&backend)
            .await
            .fault(source.as_str())
            .contains("no column owner_id")
    );
    run(&mut root, "DROP TABLE distributed_locks").await;
    assert!(
        observe(&backend)
            .await
            .fault(source.as_str())
            .contains("does not exist")
    );
}

#[tokio::test]
async fn invalid_mappings_are_refused_before_connecting() {
    // No server is needed: the configuration alone is wrong, and no error repeats the URL.
    let refused = |url: &str, table: config::postgres::LeaseTableConfig| {
        let config = postgres_config(url, vec![table]);
        match connect(&backend_config(&config), &config, Clock::start()) {
            Err(BackendError::Misconfigured { detail, remedy }) => format!("{detail} | {remedy}"),
            other => panic!("{other:?}"),
        }
    };
    let good = "postgres://u:hunter2@127.0.0.1:1/db";
    for url in [
        "",
        "127.0.0.1",
        "mysql://u:hunter2@h/db",
        "postgres://u:hunter2@h:99999/db",
    ] {
        let message = refused(url, common("t"));
        assert!(
            message.contains("`url`") && !message.contains("hunter2"),
            "{message}"
        );
    }
    let message = refused(
        good,
        lease_table("t", LeaseTablePreset::Common, &[("ressource", "x")]),
    );
    assert!(
        message.contains("\"ressource\"") && message.contains("\"resource\""),
        "{message}"
    );
    assert!(
        refused(
            good,
            lease_table("t", LeaseTablePreset::Common, &[("resource", "")])
        )
        .contains("needs a column")
    );
    assert!(refused(good, common("a.b.c")).contains("schema.table"));
    let config = postgres_config(good, vec![common("t"), common("public.t")]);
    let twice = connect(&backend_config(&config), &config, Clock::start()).unwrap_err();
    assert!(twice.to_string().contains("configured twice"), "{twice}");
    let fine = connect(
        &backend_config(&postgres_config(good, vec![])),
        &postgres_config(good, vec![]),
        Clock::start(),
    );
    let fine = fine.unwrap();
    assert_eq!(fine.address(), "127.0.0.1:1/db");
    assert!(!format!("{fine:?}").contains("hunter2"), "{fine:?}");
}
