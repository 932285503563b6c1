//! A preview of seven days of a thousand locks, from the tables of history.

use domain::alerts::builtin;
use leasehold::alerts::PreviewSpan;
use runtime::db::Db;
use sqlx::AssertSqlSafe;

use super::servers::Server;
use crate::support::store::Store;

/// A thousand locks, each acquired every two hours and held for ten minutes; one of them once for an hour.
async fn fill(history: &Db, now: i64) {
    let Db::Sqlite(pool) = history else { return };
    let from = now - 7 * 24 * 3_600_000 + 60_000;
    let insert = format!(
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 84 * 1000 - 1)
         INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, fencing_token)
         SELECT {from} + i / 1000 * 7200000 + i % 1000 * 100 + e.later * CASE WHEN i = 40007 THEN 6 ELSE 1 END,
           e.kind, 'builtin', 'lease', CAST('tenant_' || (i % 1000) || ':close' AS BLOB), 'w', NULL
         FROM n, (SELECT 'acquired' AS kind, 0 AS later UNION ALL SELECT 'released', 600000) e ORDER BY 1"
    );
    sqlx::raw_sql(AssertSqlSafe(insert)).execute(pool).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_reads_a_week_of_a_thousand_locks() {
    // 168,000 events without TTLs; the one long hold is found at three times its p95.
    let home = Store::sqlite();
    let server = Server::start(&home).await;
    let now = runtime::clock::Clock::start().now().wall.timestamp_millis();
    fill(&server.history, now).await;
    let rule = builtin()
        .into_iter()
        .find(|rule| rule.id.as_str() == "long_held")
        .unwrap();
    let seen = server.alerts.preview(&rule).await.unwrap();
    assert_eq!(seen.events, 168_000);
    assert_eq!((seen.count, seen.locks), (1, 1_000));
    assert_eq!((seen.acquisitions, seen.without_ttl), (84_000, 84_000));
    assert_eq!(seen.firings[0].subject.display_name(), "tenant_7:close");
    let unknown = builtin()
        .into_iter()
        .find(|rule| rule.id.as_str() == "no_ttl")
        .unwrap();
    assert!(server.alerts.preview(&unknown).await.unwrap().unknown.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_oversized_preview_is_cut_to_its_newest_part() {
    // The same week with room for a third of its events: the long hold is in the part that is left out.
    let home = Store::sqlite();
    let server = Server::start(&home).await;
    let now = runtime::clock::Clock::start().now().wall.timestamp_millis();
    fill(&server.history, now).await;
    let week = (now - 7 * 24 * 3_600_000, now);
    let rule = builtin()
        .into_iter()
        .find(|rule| rule.id.as_str() == "long_held")
        .unwrap();
    let preview_of = async |events_max| {
        let span = PreviewSpan {
            from: week.0,
            to: week.1,
            events_max,
        };
        let run = server.alerts.preview_run_of(vec![rule.clone()], span);
        run.complete().await.unwrap()
    };
    let all = preview_of(168_000).await;
    assert_eq!((all.is_cut, all.events, all.from), (false, 168_000, week.0));
    let part = preview_of(56_000).await;
    assert_eq!((part.is_cut, part.events, part.count), (true, 56_000, 0));
    assert!(
        part.from > now - 3 * 24 * 3_600_000 && part.to == now,
        "{}",
        part.from
    );
}
