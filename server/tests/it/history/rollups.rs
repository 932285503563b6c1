//! Runs of renewals and rollups, on both stores.

use std::time::Duration;

use ::lease::{AcquireRequest, Acquired, LeaseCaller, LeasePrincipal};
use domain::history::series::HistorySpan;
use domain::lease::{Metadata, Scope, Ttl};
use domain::lock_detail::EventKind;
use domain::names::{BackendName, OwnerId, Resource};
use domain::observation::{Lifetime, ObservedLock};

use super::recorder::{HistoryStore, Server, backend, lock, source};
use testkit::eventually;

/// A lock with a TTL of 30 s, of which so much is left.
fn leased(name: &str, remaining_ms: i64, waiters: u32) -> ObservedLock {
    ObservedLock {
        lifetime: Lifetime::Leased {
            remaining_ms,
            ttl_ms: domain::reported::Reported::Value(30_000),
        },
        waiter_count: domain::reported::Reported::Value(waiters),
        ..lock(name, "w1")
    }
}

/// A span around now that covers all that is in the store.
fn today(server: &Server) -> HistorySpan {
    let now = server.clock.now().wall.timestamp_millis();
    HistorySpan::new(now - 3_600_000, now + 60_000, now)
}

async fn renewals_are_one_row(home: HistoryStore) {
    // A lock is renewed five times, then the recorder stops; a second process observes one more renewal: two rows of
    // renewals, none of them among the events on the lock's page.
    let server = Server::start(&home).await;
    server.saw(vec![leased("jobs/1", 29_000, 0)]);
    for _ in 0..5 {
        server.saw(vec![leased("jobs/1", 20_000, 0)]);
        server.saw(vec![leased("jobs/1", 30_000, 0)]);
    }
    let from = server.clock.now().wall.timestamp_millis() - 60_000;
    // Waits until it is the writer.
    server.written(&home, 1).await;
    server.stopped().await;
    let second = Server::start(&home).await;
    second.saw(vec![leased("jobs/1", 20_000, 0)]);
    second.saw(vec![leased("jobs/1", 30_000, 0)]);
    second.written(&home, 3).await;
    second.stopped().await;
    let third = Server::start(&home).await;
    let of = third
        .history
        .events_of(
            &backend(),
            Some(&source()),
            &Resource::from("jobs/1"),
            (from, i64::MAX),
            100,
        )
        .await
        .unwrap();
    let runs: Vec<_> = of
        .iter()
        .filter(|event| event.kind == EventKind::Renewed)
        .map(|event| {
            (
                event.run.unwrap().count,
                event.ttl_ms,
                event.run.unwrap().until >= event.at,
            )
        })
        .collect();
    assert_eq!(runs, [(5, Some(30_000), true), (1, Some(30_000), true)]);
    assert_eq!(of[0].kind, EventKind::Acquired);
    assert_eq!(of[0].ttl_ms, Some(30_000));
    assert!(
        third
            .recorded("jobs/1")
            .await
            .iter()
            .all(|(kind, _)| *kind != EventKind::Renewed)
    );
    let page = third.history.events((from, i64::MAX), None, 2).await.unwrap();
    let rest = third
        .history
        .events((from, i64::MAX), page.next, 100)
        .await
        .unwrap();
    assert_eq!(page.events.len(), 2);
    assert_eq!([page.events, rest.events].concat().len(), of.len());
    third.stopped().await;
}

#[tokio::test]
async fn evenly_spaced_renewals_are_one_row_on_sqlite() {
    // The same scenario on this store.
    Box::pin(renewals_are_one_row(HistoryStore::sqlite())).await;
}

#[tokio::test]
async fn evenly_spaced_renewals_are_one_row_on_postgres() {
    // The same scenario on this store.
    Box::pin(renewals_are_one_row(HistoryStore::postgres().await)).await;
}

pub(super) async fn acquire(server: &Server, owner: &str, wait: Duration) -> Acquired {
    let caller = LeaseCaller {
        principal: LeasePrincipal::new("test"),
        scope: Scope::everything(),
    };
    let request = AcquireRequest {
        resource: Resource::from("tenant_7:close"),
        owner: OwnerId::new(owner),
        ttl: Ttl::parse(30, 3_600).unwrap(),
        wait,
        metadata: Metadata::default(),
        idempotency_key: None,
    };
    server.leases.acquire(&caller, request).await.unwrap()
}

async fn check_sums_by_template(home: HistoryStore) {
    // Two locks of one kind are observed, one with waiters; the lease service grants once, refuses once, and one
    // waiter times out. A restart adds to the same minute and loses no count.
    let server = Server::start(&home).await;
    server.saw(vec![leased("jobs/1", 29_000, 0), leased("jobs/2", 29_000, 2)]);
    assert!(matches!(
        acquire(&server, "a", Duration::ZERO).await,
        Acquired::Granted { .. }
    ));
    assert!(matches!(
        acquire(&server, "b", Duration::ZERO).await,
        Acquired::Refused { .. }
    ));
    let waited = acquire(&server, "c", Duration::from_secs(1)).await;
    assert!(matches!(waited, Acquired::Refused { .. }));
    server.saw(vec![leased("jobs/1", 28_000, 0)]);
    server.written(&home, 3).await;
    server.stopped().await;
    let second = Server::start(&home).await;
    second.saw(vec![leased("jobs/3", 29_000, 0)]);
    second.written(&home, 4).await;
    second.stopped().await;

    let third = Server::start(&home).await;
    let mut series = third.history.series(today(&third)).await.unwrap();
    let place = |series: &domain::history::series::HistorySeries, backend: &BackendName, prefix: &str| {
        let is_it =
            |of: &domain::history::series::PrefixSeries| of.backend == *backend && of.prefix == prefix;
        series.prefixes.iter().position(is_it).unwrap()
    };
    let (seen, ours) = (
        place(&series, &backend(), "jobs/*"),
        place(&series, &BackendName::builtin(), "tenant_*:close"),
    );
    third
        .history
        .load_histograms(&mut series, &[seen, ours])
        .await
        .unwrap();
    let jobs = &series.prefixes[seen].total;
    assert_eq!((jobs.acquired, jobs.ttls.count(), jobs.holds.count()), (3, 3, 1));
    assert!(jobs.held_ms >= 1_500 && jobs.waiting_ms >= 1_500, "{jobs:?}");
    assert_eq!(jobs.waits.count(), 2);
    let close = &series.prefixes[ours].total;
    assert_eq!((close.acquired, close.refused, close.waits.count()), (1, 2, 1));
    assert_eq!(
        close.most_waited.iter().next().map(|(name, _)| name),
        Some("tenant_7:close")
    );
    let watched = series.watched(&backend()).unwrap();
    let ms: i64 = watched.watched_ms.iter().sum();
    assert!((500..60_000).contains(&ms), "{ms}");
    assert!(!watched.reports_waiters());
    third.stopped().await;
}

#[tokio::test]
async fn sums_are_grouped_by_template_on_sqlite() {
    // The same scenario on this store.
    Box::pin(check_sums_by_template(HistoryStore::sqlite())).await;
}

#[tokio::test]
async fn sums_are_grouped_by_template_on_postgres() {
    // The same scenario on this store.
    Box::pin(check_sums_by_template(HistoryStore::postgres().await)).await;
}

#[tokio::test]
async fn old_rollups_are_deleted() {
    // A thousand minutes of two years ago and those of now.
    let home = HistoryStore::sqlite();
    home.sql(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
        INSERT INTO history_rollups SELECT 60, i * 60000, 'cache', 'old', 'p', 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0,
            NULL, NULL, NULL, NULL, NULL, NULL FROM n",
    )
    .await;
    let server = Server::start(&home).await;
    server.saw(vec![leased("jobs/1", 29_000, 0)]);
    eventually("the old ones are gone", async || {
        home.number("SELECT count(*) FROM history_rollups WHERE prefix = 'old'")
            .await
            == 0
    })
    .await;
    eventually("the new ones are there", async || {
        home.number("SELECT count(*) FROM history_rollups WHERE prefix = 'jobs/*'")
            .await
            >= 4
    })
    .await;
    server.stopped().await;
}
