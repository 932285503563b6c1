//! Pages while others append, on both stores.

use super::audit_server::{AuditServer, ids};
use super::chain::{entry, fill};
use crate::support::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

async fn pages_are_exact(home: Store) {
    let server = AuditServer::on(home).await;
    let auditor = server.auditor().await;
    fill(&server.audit, 120).await;
    let done = Arc::new(AtomicBool::new(false));
    let appended = Arc::new(AtomicUsize::new(0));
    let (appender, is_done, count) = (server.store.open_audit().await, done.clone(), appended.clone());
    let appending = async {
        let mut number = 0;
        while !is_done.load(Ordering::Relaxed) {
            number += 1;
            appender.append(entry(number)).await.unwrap();
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    let reading = async {
        // Both lengths, and again until enough was appended meanwhile.
        for limit in [7, 50].into_iter().cycle().take(20) {
            if limit == 7 && appended.load(Ordering::Relaxed) > 4 {
                break;
            }
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let (status, page) = server
                    .as_user(&auditor)
                    .get(&format!("/v1/audit?limit={limit}&cursor={cursor}"))
                    .await;
                assert_eq!(status, 200, "{page}");
                seen.extend(ids(&page));
                match page["nextCursor"].as_str() {
                    Some(next) => next.clone_into(&mut cursor),
                    None => break,
                }
            }
            let first = seen[0];
            let every: Vec<i64> = (1..=first).rev().collect();
            assert_eq!(
                seen, every,
                "each row once, from the one that was the newest down to the first"
            );
        }
        done.store(true, Ordering::Relaxed);
    };
    futures::future::join(appending, reading).await;
    let appended = appended.load(Ordering::Relaxed);
    assert!(appended > 4, "{appended} rows were appended meanwhile");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paging_neither_loses_nor_repeats_entries_during_appends() {
    // Pages of two lengths through the whole audit log, with another connection appending as fast as it can.
    pages_are_exact(Store::sqlite()).await;
    pages_are_exact(Store::postgres().await).await;
}

#[tokio::test]
async fn a_filter_applies_to_all_pages() {
    // Every fifth row, in pages of three, as the links on the page do it.
    let server = AuditServer::on(Store::sqlite()).await;
    let auditor = server.auditor().await;
    fill(&server.audit, 40).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let path = format!("/v1/audit?prefix=tenant_3:&limit=3&cursor={cursor}");
        let (_, page) = server.as_user(&auditor).get(&path).await;
        seen.extend(ids(&page));
        match page["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    assert_eq!(seen.len(), 8);
    assert!(seen.windows(2).all(|pair| pair[0] - pair[1] == 5), "{seen:?}");
}

/// Twenty-five thousand rows, one each second since 1970, every second one a forced unlock. Searching reads no hashes.
const MANY: &str = "INSERT INTO audit_entries (seq, created_at, action, phase, outcome, actor_id, actor_name, ip, user_agent,
    request_id, prev_hash, hash)
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 25000)
    SELECT n, n * 1000, CASE WHEN n % 2 = 0 THEN 'FORCE_UNLOCK' ELSE 'LOGIN' END, 'outcome', 'ok', 'p_1', 'someone',
    '192.0.2.7', 'curl', 'r_1', 'before ' || n, 'hash ' || n FROM numbers";

async fn a_time_is_searched(home: Store) {
    let server = AuditServer::on(home).await;
    let auditor = server.auditor().await;
    server.store.tamper("DELETE FROM audit_entries").await;
    server.store.tamper(MANY).await;
    // Of few rows, of more than are read whole, without a beginning, and empty: from, to, the newest that fits, how many fit.
    for (from, to, newest, fit) in [
        ("1970-01-01T00:01:40Z", "1970-01-01T00:03:20Z", 198, 50),
        ("1970-01-01T00:00:10Z", "1970-01-01T06:40:00Z", 23_998, 60),
        ("1969-01-01T00:00:00Z", "1970-01-01T00:00:30Z", 28, 14),
        ("1971-01-01T00:00:00Z", "1972-01-01T00:00:00Z", 0, 0),
    ] {
        let path = format!("/v1/audit?action=FORCE_UNLOCK&from={from}&to={to}&limit=60");
        let (status, page) = server.as_user(&auditor).get(&path).await;
        assert_eq!(status, 200, "{page}");
        let expected: Vec<i64> = (1..=newest).rev().step_by(2).take(fit).collect();
        assert_eq!(ids(&page), expected, "{path}");
    }
}

#[tokio::test]
async fn a_time_filter_finds_few_or_many_entries() {
    a_time_is_searched(Store::sqlite()).await;
    a_time_is_searched(Store::postgres().await).await;
}
