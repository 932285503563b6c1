//! Previews of much history: the newest part comes first, a client that leaves ends the work, and a repeated preview
//! reads only what is new.

use crate::support::{Store, TestServer, client, token};
use std::time::Duration;

use app::pages::rule_editor::data::RulePreview;
use domain::access::Role;
use domain::alerts::{Pattern, Rule, builtin};
use leasehold::alerts::{PreviewRun, PreviewSpan};
use runtime::clock::Clock;
use runtime::db::Db;
use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use super::servers::Server;
use testkit::eventually;

const LOCKS: u64 = 1_000;
const ROUNDS: u64 = 125;
/// More than the newest part.
const EVENTS: u64 = events(ROUNDS);
/// Where the history may be shorter than the newest part.
const ROUNDS_FEW: u64 = 12;
/// Of the newest part.
const EVENTS_FIRST: u64 = 200_000;

const fn events(rounds: u64) -> u64 {
    2 * LOCKS * rounds
}

fn long_held() -> Rule {
    let mut rules = builtin().into_iter();
    rules.find(|rule| rule.id.as_str() == "long_held").unwrap()
}

/// A clock that passes no full hour during a test, because a preview then begins to cover other events.
fn clock_within_an_hour() -> Clock {
    let (clock, hour_ms) = (Clock::start(), 3_600_000);
    let left_ms = hour_ms - clock.now().wall.timestamp_millis().rem_euclid(hour_ms);
    if left_ms < 600_000 {
        clock.advance(Duration::from_millis(left_ms.unsigned_abs()));
    }
    clock
}

/// A week in which each lock is held for ten minutes in each round; one of them for an hour in the eleventh.
async fn fill(history: &Db, clock: &Clock, rounds: u64) {
    let now = clock.now().wall.timestamp_millis();
    let week: i64 = 7 * 24 * 3_600_000;
    let (from, step) = (now - week + 60_000, week.unsigned_abs() / (rounds + 1));
    let last = LOCKS * rounds - 1;
    let rows = match history {
        Db::Sqlite(_) => {
            format!("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {last})")
        }
        Db::Postgres(_) => format!("WITH n(i) AS (SELECT generate_series(0, {last}))"),
    };
    let blob = match history {
        Db::Sqlite(_) => "CAST('tenant_' || (i % 1000) || ':close' AS BLOB)",
        Db::Postgres(_) => "convert_to('tenant_' || (i % 1000) || ':close', 'UTF8')",
    };
    let insert = format!(
        "INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, fencing_token)
         {rows} SELECT {from} + i / 1000 * {step} + i % 1000 * 100 + e.later * CASE WHEN i = 10007 THEN 6 ELSE 1 END AS at,
           e.kind, 'builtin', 'lease', {blob}, 'w', '7'
         FROM n, (SELECT 'acquired' AS kind, 0 AS later UNION ALL SELECT 'released', 600000) e ORDER BY 1"
    );
    match history {
        Db::Sqlite(pool) => drop(sqlx::raw_sql(AssertSqlSafe(insert)).execute(pool).await.unwrap()),
        Db::Postgres(pool) => {
            // It may take longer than a statement of the server may.
            let insert = format!("BEGIN; SET LOCAL statement_timeout = 0; {insert}; COMMIT");
            sqlx::raw_sql(AssertSqlSafe(insert)).execute(pool).await.unwrap();
        }
    }
}

async fn in_two_parts(home: Store) {
    let clock = clock_within_an_hour();
    let server = Server::start_at(&home, clock.clone()).await;
    fill(&server.history, &clock, ROUNDS).await;
    let mut run: PreviewRun = server.alerts.preview_run(vec![long_held()]);
    let newest = run.next().await.unwrap().unwrap().remove(0);
    assert!(newest.is_partial && !newest.is_cut && newest.count == 0);
    assert!(newest.events <= EVENTS_FIRST && newest.from > newest.to - 7 * 24 * 3_600_000);
    assert_eq!(server.alerts.preview_rows_read(), newest.events);
    let whole = run.next().await.unwrap().unwrap().remove(0);
    assert_eq!(
        (whole.is_partial, whole.count, whole.events, whole.locks),
        (false, 1, EVENTS, LOCKS)
    );
    assert!(run.next().await.is_none());
    assert_eq!(server.alerts.preview_rows_read(), newest.events + EVENTS);
    // A hold is evaluated when it ends, and at each end of a series point in it.
    assert!(whole.evaluations < 2 * whole.events, "{}", whole.evaluations);
    // A rule on one tenant reads its rows alone.
    let before = server.alerts.preview_rows_read();
    let mut scoped = long_held();
    scoped.scope.prefix = Pattern::parse("tenant_7:").unwrap();
    assert_eq!(server.alerts.preview(&scoped).await.unwrap().count, 1);
    assert_eq!(server.alerts.preview_rows_read() - before, 2 * ROUNDS);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_part_of_a_preview_comes_first_on_sqlite() {
    Box::pin(in_two_parts(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn newest_part_of_a_preview_comes_first_on_postgres() {
    Box::pin(in_two_parts(Store::postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_preview_stops_reading() {
    let home = Store::sqlite();
    let clock = clock_within_an_hour();
    let server = Server::start_at(&home, clock.clone()).await;
    fill(&server.history, &clock, ROUNDS).await;
    let mut run = server.alerts.preview_run(vec![long_held()]);
    let has_begun = eventually("rows are read", async || server.alerts.preview_rows_read() > 0);
    tokio::select! {
        _ = run.next() => panic!("it is read in small steps"),
        () = has_begun => drop(run),
    }
    eventually("it has stopped", async || server.alerts.previews_running() == 0).await;
    assert!(server.alerts.preview_rows_read() < EVENTS_FIRST);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_preview_is_cached() {
    let home = Store::sqlite();
    let clock = clock_within_an_hour();
    let server = Server::start_at(&home, clock.clone()).await;
    fill(&server.history, &clock, ROUNDS_FEW).await;
    let first = server.alerts.preview(&long_held()).await.unwrap();
    let read = server.alerts.preview_rows_read();
    let mut renamed = long_held();
    renamed.name = "Another name".to_owned();
    assert_eq!(server.alerts.preview(&renamed).await.unwrap(), first);
    assert_eq!(server.alerts.preview_rows_read(), read);
    let mut other = long_held();
    other.timing.for_ms = 1_000;
    server.alerts.preview(&other).await.unwrap();
    assert_eq!(server.alerts.preview_rows_read(), 2 * read);
    server.stop().await;
}

/// One lock is held for 40 minutes, four times its p95; the other as long as usual.
async fn hold_two_more(history: &Db, clock: &Clock) {
    let now = clock.now().wall.timestamp_millis();
    let minute = 60_000;
    let rows = [
        (55, "acquired", "tenant_1:close"),
        (50, "acquired", "tenant_2:close"),
        (40, "released", "tenant_2:close"),
        (15, "released", "tenant_1:close"),
    ];
    for (minutes_ago, kind, name) in rows {
        let insert = "INSERT INTO lock_events (at, kind, backend, source, resource, owner_id, fencing_token)
            VALUES ($1, $2, 'builtin', 'lease', $3, 'w', '8')";
        let at = now - minutes_ago * minute;
        match history {
            Db::Sqlite(pool) => {
                let query = sqlx::query(insert).bind(at).bind(kind).bind(name.as_bytes());
                query.execute(pool).await.unwrap();
            }
            Db::Postgres(pool) => {
                let query = sqlx::query(insert).bind(at).bind(kind).bind(name.as_bytes());
                query.execute(pool).await.unwrap();
            }
        }
    }
}

async fn continued(home: Store, rounds: u64) {
    let clock = clock_within_an_hour();
    let server = Server::start_at(&home, clock.clone()).await;
    fill(&server.history, &clock, rounds).await;
    let rules = || vec![long_held()];
    let first = server.alerts.preview(&long_held()).await.unwrap();
    let read = server.alerts.preview_rows_read();
    hold_two_more(&server.history, &clock).await;
    // Rows written by SQL are noticed only after a write of the server itself.
    server.refuse("jobs/1").await;
    let preview = async || {
        let mut run = server.alerts.preview_run(rules());
        let preview = run.next().await.unwrap().unwrap().remove(0);
        assert!(run.next().await.is_none() && !preview.is_partial);
        preview
    };
    eventually("the new hold is previewed", async || {
        preview().await.count == first.count + 1
    })
    .await;
    let second = preview().await;
    assert_eq!(second.events, events(rounds) + 4);
    // The part before the last hour is not read again.
    assert!(server.alerts.preview_rows_read() - read < events(rounds) / 10);
    // It equals a preview that reads everything.
    let span = PreviewSpan {
        from: second.from,
        to: second.to,
        events_max: 3_000_000,
    };
    let whole = server
        .alerts
        .preview_run_of(rules(), span)
        .complete()
        .await
        .unwrap();
    let result = |preview: &domain::alerts::Preview| (preview.firings.clone(), preview.events, preview.locks);
    assert_eq!(result(&second), result(&whole));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_preview_reads_only_new_events_on_sqlite() {
    Box::pin(continued(Store::sqlite(), ROUNDS)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_preview_reads_only_new_events_on_postgres() {
    Box::pin(continued(Store::postgres().await, ROUNDS_FEW)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_and_api_send_the_newest_part_first() {
    let home = Store::sqlite();
    let db = Db::open(&home.url).await.unwrap();
    let history = db.history(&home.url).await.unwrap();
    fill(&history, &Clock::start(), ROUNDS).await;
    history.close().await;
    db.close().await;
    let console = Box::pin(TestServer::builder().operator().start_on(Store::at(&home.url))).await;
    let admin = token(&console.serving, Role::Admin).await;
    let admin = client(admin.expose(), Duration::from_secs(60));
    // The page is complete; the editor asks for the newest part first while the reader types.
    let page = admin
        .get(console.url("/alerts/rules/long_held"))
        .send()
        .await
        .unwrap();
    assert!(page.status().is_success());
    let page = page.text().await.unwrap();
    assert_eq!(page.matches("name=\"line\"").count(), 1);
    assert!(page.contains("follows the form"), "{page}");
    assert!(!page.contains("loading the rest"), "{page}");
    let part = async |part: &str| {
        let query = [
            ("id", "long_held"),
            ("search", ""),
            ("fields", "id=long_held&condition=long_held&for=2s&enabled=yes"),
            ("part", part),
        ];
        let asked = admin.get(console.url("/api/rule-preview")).query(&query);
        let bytes = asked.send().await.unwrap().bytes().await.unwrap();
        let preview: RulePreview = app::api::codec::decode(&bytes).unwrap();
        let edited = preview.edited.unwrap();
        (edited.is_partial, edited.count)
    };
    assert_eq!(part("newest").await, (true, 0));
    assert_eq!(part("").await, (false, 1));
    let lines = admin
        .post(console.url("/v1/rules/preview"))
        .header("accept", "application/x-ndjson")
        .json(&json!({"condition": "long_held", "for": "3s"}))
        .send()
        .await
        .unwrap();
    let lines = lines.text().await.unwrap();
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let fired: Vec<_> = lines
        .iter()
        .map(|line| (line["isPartial"].as_bool(), line["count"].as_u64()))
        .collect();
    assert_eq!(fired, [(Some(true), Some(0)), (Some(false), Some(1))]);
}
