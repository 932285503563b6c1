//! A quarter of an hour of anonymous requests that are refused, each as large as a request may be.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use domain::audit::AuditEntry;
use futures::StreamExt as _;
use reqwest::StatusCode;
use runtime::db::console_file;
use serde_json::Value;

use super::proxied_server::ProxiedServer;
use crate::support::form::Form as _;
use testkit::eventually;

const MINUTES: usize = 15;
const REQUESTS_A_MINUTE: usize = 100;
/// The requirement allows a megabyte an hour.
const GROWTH_BYTES_MAX: u64 = 250_000;

/// Size of the file with the audit log once everything is written back to it, and its entries.
async fn store_bytes(proxied: &ProxiedServer) -> (u64, usize) {
    let file = console_file(Path::new(proxied.server.store.url.trim_start_matches("sqlite:")));
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
    let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
    // A reader or a writer of the server may be in the way for a moment.
    eventually("the log is written back", async || {
        let checkpoint = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)");
        let (busy, _, _): (i64, i64, i64) = checkpoint.fetch_one(&pool).await.unwrap();
        busy == 0
    })
    .await;
    let entries: i64 = sqlx::query_scalar("SELECT count(*) FROM audit_entries")
        .fetch_one(&pool)
        .await
        .unwrap();
    pool.close().await;
    (
        std::fs::metadata(file).unwrap().len(),
        usize::try_from(entries).unwrap(),
    )
}

/// Requests by outcome, as the entries count them.
fn requests(rows: &[AuditEntry]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in rows.iter().filter(|row| row.actor_id == "anonymous") {
        let after: Value = row
            .after
            .as_deref()
            .map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
        *counts.entry(row.outcome.clone()).or_default() += after["times"].as_u64().unwrap_or(1);
    }
    counts
}

async fn attack(proxied: &ProxiedServer, minute: usize, number: usize) {
    let long = "a".repeat(20_000);
    // Three sources that stay, and one that is new each time.
    let from = match number % 4 {
        3 => format!("2001:db8:{minute:x}:{number:x}::1"),
        fixed => format!("203.0.113.{fixed}"),
    };
    let request = match number % 3 {
        0 => proxied.post(&from, &format!("/v1/unlocks/{long}/confirm")),
        1 => proxied.post(&from, "/sign-in").form(&[("link", "lhl_guess")]),
        _ => proxied
            .post(&from, "/sign-in")
            .form(&[("name", "ada"), ("password", "not the password")]),
    };
    let request = request
        .header("x-request-id", &long)
        .header("user-agent", &long[..10_000])
        .header("traceparent", format!("00-{}-01", &long[..10_000]));
    let answer = request.send().await.unwrap();
    let status = answer.status();
    let refusals = [
        StatusCode::UNAUTHORIZED,
        StatusCode::GONE,
        StatusCode::TOO_MANY_REQUESTS,
    ];
    assert!(
        refusals.contains(&status),
        "{number}: {status} {}",
        answer.text().await.unwrap()
    );
}

#[tokio::test]
async fn anonymous_requests_add_less_than_a_megabyte_an_hour() {
    // 1,500 requests from some 380 sources, with every field as long as it goes. Each refusal is still counted.
    let proxied = ProxiedServer::start().await;
    let (before, _) = store_bytes(&proxied).await;
    for minute in 0..MINUTES {
        futures::stream::iter(0..REQUESTS_A_MINUTE)
            .for_each_concurrent(16, |number| attack(&proxied, minute, number))
            .await;
        proxied.server.serving.clock.advance(Duration::from_secs(60));
    }
    let denied = (MINUTES * REQUESTS_A_MINUTE).div_ceil(3) as u64;
    eventually("every refusal is counted", async || {
        proxied.server.serving.clock.advance(Duration::from_secs(60));
        let counts = requests(&proxied.server.audit_entries().await);
        let others = counts.get("several").copied().unwrap_or(0);
        counts.get("unauthenticated").copied().unwrap_or(0) + others >= denied
    })
    .await;
    let rows = proxied.server.audit_entries().await;
    for row in &rows {
        let path = row.after.as_deref().unwrap_or_default();
        assert!(path.len() <= 1_000, "{row:?}");
        assert!(row.request_id.as_ref().is_none_or(|id| id.len() <= 64), "{row:?}");
        assert!(row.trace_id.is_none(), "{row:?}");
    }
    let (after, entries) = store_bytes(&proxied).await;
    // What was measured holds every entry that was read.
    assert!(entries >= rows.len(), "{entries} of {}", rows.len());
    let grown = after - before;
    assert!(
        grown < GROWTH_BYTES_MAX,
        "{grown} bytes in {} entries",
        rows.len()
    );
}

#[tokio::test]
async fn a_source_has_one_entry_a_minute_with_its_number() {
    // Ten refusals within a minute: the first at once, the rest when the minute is over.
    let proxied = ProxiedServer::start().await;
    for _ in 0..10 {
        let request = proxied.post("203.0.113.1", "/v1/unlocks/u_1/confirm");
        assert_eq!(request.send().await.unwrap().status(), StatusCode::UNAUTHORIZED);
    }
    assert_eq!(proxied.server.audit_entries().await.len(), 1);
    proxied.server.serving.clock.advance(Duration::from_secs(60));
    eventually("the rest is written", async || {
        proxied.server.audit_entries().await.len() == 2
    })
    .await;
    let rows = proxied.server.audit_entries().await;
    assert!(
        rows[0].after.as_ref().unwrap().contains("\"times\":9"),
        "{rows:?}"
    );
    assert_eq!(rows[0].ip.as_deref(), Some("203.0.113.1"));
}
