//! `orders-db`: the lease table, ShedLock, Liquibase, advisory locks, a holder that is gone, blocked sessions.

use std::collections::BTreeSet;

use ::config::SystemConfig;
use ::demo::Demo;
use secrecy::ExposeSecret;
use sqlx::postgres::{PgPool, PgPoolOptions};

use testkit::within;

use super::backends::{Sample, comes_and_goes, falls_silent, renews};
use super::{MINUTE, backend};

/// Each must become true within the minute.
const FACTS: [(&str, &str); 9] = [
    (
        "a lease that is never renewed has less than an eighth of its time left",
        "SELECT EXISTS (SELECT FROM distributed_locks WHERE updated_at = created_at
         AND expires_at - clock_timestamp() BETWEEN interval '0' AND (expires_at - created_at) / 8
         AND expires_at - created_at > interval '30 s')",
    ),
    (
        "a lease that renewed fell silent and still runs",
        "SELECT EXISTS (SELECT FROM distributed_locks WHERE updated_at - created_at > interval '11 s'
         AND clock_timestamp() - updated_at > interval '12 s' AND expires_at > clock_timestamp())",
    ),
    (
        "an expired row is left behind",
        "SELECT EXISTS (SELECT FROM distributed_locks WHERE expires_at < clock_timestamp() - interval '20 s')",
    ),
    (
        "a resource that was taken again has a higher token",
        "SELECT EXISTS (SELECT FROM distributed_locks
         WHERE resource = 'tenant_123:snapshot:orders' AND fencing_token > 1)",
    ),
    (
        "scheduled tasks hold ShedLock rows",
        "SELECT count(*) >= 2 FROM shedlock WHERE lock_until > timezone('utc', clock_timestamp())",
    ),
    (
        "a migration holds Liquibase's lock",
        "SELECT locked AND lockedby LIKE 'schema-migrator%' FROM databasechangeloglock",
    ),
    (
        "a prepared transaction without a session holds an advisory lock with a waiter",
        "SELECT EXISTS (SELECT FROM pg_locks held JOIN pg_locks waits USING (locktype, classid, objid, objsubid)
         JOIN pg_stat_activity a ON a.pid = waits.pid
         WHERE held.locktype = 'advisory' AND held.granted AND held.pid IS NULL
         AND NOT waits.granted AND a.application_name = 'exporter-2')",
    ),
    (
        "one session holds an advisory lock and two with names wait for it",
        "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE l.locktype = 'advisory' AND a.application_name LIKE 'settlement-%'
         GROUP BY l.objid HAVING count(*) FILTER (WHERE l.granted) = 1 AND count(*) FILTER (WHERE NOT l.granted) = 2)",
    ),
    (
        "three sessions are blocked on rows, one behind the other",
        "SELECT EXISTS (SELECT FROM pg_stat_activity leaf
         JOIN pg_stat_activity middle ON middle.pid = ANY (pg_blocking_pids(leaf.pid))
         JOIN pg_stat_activity root ON root.pid = ANY (pg_blocking_pids(middle.pid))
         WHERE root.application_name = 'billing-api-2' AND root.state = 'idle in transaction'
         AND middle.application_name = 'ledger-post-4' AND leaf.application_name = 'exporter-3')",
    ),
];

const SAMPLE: &str = "
SELECT lease_id, (extract(epoch FROM expires_at - clock_timestamp()) * 1000)::bigint
FROM distributed_locks WHERE resource = $1";

pub(super) async fn shows_all(demo: &Demo) {
    let SystemConfig::Postgres(config) = backend(demo, "orders-db") else {
        panic!("not Postgres")
    };
    let options = PgPoolOptions::new().max_connections(4);
    let pool = options.connect(config.url.expose_secret()).await.unwrap();
    let facts = futures::future::join_all(FACTS.map(|(what, query)| holds(&pool, what, query)));
    tokio::join!(
        facts,
        renews("a steady worker", || sample(
            &pool,
            "tenant_123:billing-close:2026-04"
        )),
        renews("a quick one", || sample(&pool, "tenant_204:ledger-post")),
        falls_silent("the payout", || sample(&pool, "tenant_204:payout:2026-04-18")),
        comes_and_goes("an order", || orders(&pool)),
        only_looks(&pool),
    );
    let locks: i64 = sqlx::query_scalar("SELECT count(*) FROM distributed_locks")
        .fetch_one(&pool)
        .await
        .unwrap();
    assert!((18..=40).contains(&locks), "{locks} rows in the lease table");
}

async fn holds(pool: &PgPool, what: &str, query: &'static str) {
    within(MINUTE, what, async || {
        sqlx::query_scalar(query).fetch_one(pool).await.unwrap()
    })
    .await;
}

async fn sample(pool: &PgPool, resource: &str) -> Option<Sample> {
    let row: Option<(String, i64)> = sqlx::query_as(SAMPLE)
        .bind(resource)
        .fetch_optional(pool)
        .await
        .unwrap();
    row.map(|(identity, remaining_ms)| Sample {
        identity,
        remaining_ms,
    })
}

async fn orders(pool: &PgPool) -> BTreeSet<String> {
    let query = "SELECT resource FROM distributed_locks WHERE resource LIKE '%:order:%'";
    let rows: Vec<String> = sqlx::query_scalar(query).fetch_all(pool).await.unwrap();
    rows.into_iter().collect()
}

/// The console's account cannot write.
async fn only_looks(pool: &PgPool) {
    for statement in [
        "DELETE FROM distributed_locks",
        "UPDATE shedlock SET lock_until = now()",
        "SELECT * FROM invoices",
        "CREATE TABLE mine (n int)",
    ] {
        let denied = sqlx::query(statement).execute(pool).await.unwrap_err();
        let code = denied
            .into_database_error()
            .and_then(|error| error.code().map(|code| code.to_string()));
        assert_eq!(code.as_deref(), Some("42501"), "{statement}");
    }
}
