//! The tables of both stores: the newest from the start, unchanged by another migration, with the same names on either.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::{Connection as _, PgConnection, SqliteConnection};

use super::lease_server::{LeaseStore, StoreKind, on_both_stores};

/// Columns by table.
type Tables = BTreeMap<String, BTreeSet<String>>;

/// Of `leases.db`: each SQLite file has the tables of all three.
async fn tables(store: &LeaseStore) -> Tables {
    let of_postgres = "SELECT table_name::text, column_name::text FROM information_schema.columns
        WHERE table_schema = 'public'";
    let of_sqlite = "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let columns: Vec<(String, String)> = if store.postgres.is_some() {
        let mut connection = PgConnection::connect(&store.url).await.unwrap();
        let query = sqlx::query_as(of_postgres);
        query.fetch_all(&mut connection).await.unwrap()
    } else {
        let mut connection = SqliteConnection::connect(&store.url).await.unwrap();
        let query = sqlx::query_as(of_sqlite);
        query.fetch_all(&mut connection).await.unwrap()
    };
    let mut tables = Tables::new();
    for (table, column) in columns {
        tables.entry(table).or_default().insert(column);
    }
    tables
}

async fn migrations(store: &LeaseStore) -> Vec<(i64, String)> {
    let select = "SELECT version, CAST(installed_on AS TEXT) FROM _sqlx_migrations ORDER BY version";
    if store.postgres.is_some() {
        let mut connection = PgConnection::connect(&store.url).await.unwrap();
        let query = sqlx::query_as(select);
        query.fetch_all(&mut connection).await.unwrap()
    } else {
        let mut connection = SqliteConnection::connect(&store.url).await.unwrap();
        let query = sqlx::query_as(select);
        query.fetch_all(&mut connection).await.unwrap()
    }
}

on_both_stores!(a_second_migration_changes_nothing, |store| {
    // The first start makes every table; `leasehold migrate` and another start change nothing.
    store.serve().await.close().await;
    let (applied, made) = (migrations(store).await, tables(store).await);
    assert_eq!(applied.len(), 7, "{applied:?}");
    ::lease::migrate(&store.url, &::lease::LeaseConfig::default())
        .await
        .unwrap();
    store.serve().await.close().await;
    assert_eq!(migrations(store).await, applied);
    assert_eq!(tables(store).await, made);
});

/// Tables of one store only, with the reason in its migration.
const SQLITE_ALONE: &[&str] = &[
    "idempotency_keys.seq",
    "store_meta.clock_behind_ms",
    "store_meta.grant_count",
    "store_meta.unwritten_from",
];
const POSTGRES_ALONE: &[&str] = &[
    "audit_append_lock.id",
    "lease_replicas.heartbeat_at",
    "lease_replicas.replica_id",
    "lease_shard.installation_id",
    "lease_shard.name_hash",
    "lease_shard.only_row",
    "lease_shard.shard_count",
    "lease_shard.shard_index",
    "store_meta.clock_offset_ms",
    "store_meta.clock_offset_raised_at",
    "store_meta.cluster_identity",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_stores_have_the_same_tables_and_columns() {
    let mut names = Vec::new();
    for kind in [StoreKind::Sqlite, StoreKind::Postgres] {
        let store = LeaseStore::new(kind).await;
        store.serve().await.close().await;
        let tables = tables(&store).await.into_iter();
        let of = |(table, columns): (String, BTreeSet<String>)| {
            let named = columns.into_iter().map(move |column| format!("{table}.{column}"));
            named.collect::<Vec<_>>()
        };
        names.push(tables.flat_map(of).collect::<BTreeSet<String>>());
    }
    let alone = |one: usize, other: usize| names[one].difference(&names[other]).cloned().collect::<Vec<_>>();
    assert_eq!(alone(0, 1), SQLITE_ALONE);
    assert_eq!(alone(1, 0), POSTGRES_ALONE);
}
