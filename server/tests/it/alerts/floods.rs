//! Counts of rules are exact under floods, at the server that does not evaluate, and over a restart.

use std::collections::BTreeMap;
use std::time::Duration;

use ::lease::{AcquireRequest, Acquired, LeaseCaller};
use domain::alerts::{Draft, Preview, Rule};
use domain::lease::{Metadata, Ttl};
use domain::names::{OwnerId, Resource};
use leasehold::identity::Principal;
use runtime::clock::Clock;
use runtime::db::Db;

use super::servers::{Server, firing, rounds};
use crate::support::store::Store;
use testkit::eventually;

/// More than one page of fencing rejections.
const FLOOD: usize = 1_600;

async fn flood(server: &Server, resource: &str) {
    let reports = (0..FLOOD).map(|_| server.refuse(resource));
    futures::future::join_all(reports).await;
}

async fn rule(server: &Server, id: &str) -> Rule {
    server.alerts.rule(id).await.unwrap().rule
}

async fn fires_for(server: &Server, resource: &str) -> bool {
    let open = server.alerts.open(&Default::default()).await.unwrap();
    open.iter()
        .any(|open| open.kept.alert.is_firing() && open.kept.alert.subject.display_name() == resource)
}

async fn preview(server: &Server, id: &str) -> Preview {
    let rule = rule(server, id).await;
    server.alerts.preview(&rule).await.unwrap()
}

async fn flooded(home: Store) {
    let server = Server::start(&home).await;
    server.refuse("quiet").await;
    eventually("the rejection fires", || fires_for(&server, "quiet")).await;
    flood(&server, "loud").await;
    eventually("the flood fires", || fires_for(&server, "loud")).await;
    rounds().await;
    assert!(fires_for(&server, "quiet").await, "it has minutes to go");
    let preview = preview(&server, "fencing_rejections").await;
    assert_eq!(
        (preview.count, preview.events, preview.is_cut),
        (2, 1 + FLOOD as u64, false)
    );
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_rejections_hides_no_other_lock_on_sqlite() {
    // One rejection, then 1,600 of another lock: the first alert keeps firing, and the preview
    // has both.
    Box::pin(flooded(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_rejections_hides_no_other_lock_on_postgres() {
    Box::pin(flooded(Store::postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_with_threshold_1500_fires_at_1600_rejections() {
    // The count of the rule is higher than one page of fencing rejections.
    let home = Store::sqlite();
    let server = Server::start(&home).await;
    let mut draft = Draft::from(&rule(&server, "fencing_rejections").await);
    draft.with.insert("count".to_owned(), "1500".to_owned());
    let who = Principal::system("test");
    server
        .alerts
        .save_rule(&who, draft, Some(1), false)
        .await
        .unwrap();
    flood(&server, "loud").await;
    eventually("it fires", || fires_for(&server, "loud")).await;
    server.stop().await;
}

/// Three leases that were released are renewed.
async fn fail_renewals(server: &Server) {
    let caller = LeaseCaller::open();
    for n in 0..3 {
        let request = request(&format!("jobs/{n}"));
        let Acquired::Granted { lease, .. } = server.leases.acquire(&caller, request).await.unwrap() else {
            panic!("the resource is free");
        };
        server.leases.release(&caller, lease.id).await.unwrap();
        server.leases.renew(&caller, lease.id, None).await.unwrap_err();
    }
}

fn request(resource: &str) -> AcquireRequest {
    AcquireRequest {
        resource: Resource::from(resource),
        owner: OwnerId::new("w"),
        ttl: Ttl::parse(30, 60).unwrap(),
        wait: Duration::ZERO,
        metadata: Metadata::default(),
        idempotency_key: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_renewals_at_the_other_server_count() {
    // The server that notifies of a rejection evaluates; the renewals fail at the other one.
    let home = Store::postgres().await;
    let (one, two) = (Server::start(&home).await, Server::start(&home).await);
    one.refuse("jobs/1").await;
    eventually("one of them evaluates", || async {
        one.sent_count() + two.sent_count() == 1
    })
    .await;
    let (evaluating, other) = if one.sent_count() == 1 {
        (one, two)
    } else {
        (two, one)
    };
    fail_renewals(&other).await;
    eventually("the failed renewals fire", || fires_for(&evaluating, "builtin")).await;
    other.stop().await;
    evaluating.stop().await;
}

async fn survives(home: Store) {
    let first = Server::start(&home).await;
    fail_renewals(&first).await;
    eventually("the failed renewals fire", || fires_for(&first, "builtin")).await;
    first.stop().await;
    let second = Server::start(&home).await;
    rounds().await;
    assert_eq!((second.sent_count(), firing(&second).await), (0, 1));
    let preview = preview(&second, "renewal_failures").await;
    assert_eq!((preview.count, preview.unknown), (1, None));
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_renewals_survive_a_restart_on_sqlite() {
    Box::pin(survives(Store::sqlite())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_renewals_survive_a_restart_on_postgres() {
    Box::pin(survives(Store::postgres().await)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_acquires_are_dated_to_their_second() {
    // Ten refusals at any second of the minute: none is counted before it happened.
    let home = Store::sqlite();
    let server = Server::start(&home).await;
    let caller = LeaseCaller::open();
    let before = Clock::start().now().wall.timestamp_millis();
    for _ in 0..11 {
        server.leases.acquire(&caller, request("busy/1")).await.unwrap();
    }
    eventually("all refusals are written", || async {
        refusals(&server).await.values().sum::<u64>() == 10
    })
    .await;
    let after = Clock::start().now().wall.timestamp_millis();
    for second in refusals(&server).await.into_keys() {
        assert!(
            (before - 1_000..=after).contains(&second),
            "{before} {second} {after}"
        );
    }
    server.stop().await;
}

/// By second, in milliseconds since 1970.
async fn refusals(server: &Server) -> BTreeMap<i64, u64> {
    let Db::Sqlite(pool) = &server.history else {
        unreachable!()
    };
    let select = "SELECT at, seconds FROM lease_signals WHERE kind = 'acquire_refused'";
    let rows: Vec<(i64, String)> = sqlx::query_as(select).fetch_all(pool).await.unwrap();
    let mut refusals = BTreeMap::new();
    for (minute, seconds) in rows {
        let seconds: BTreeMap<i64, u64> = serde_json::from_str(&seconds).unwrap();
        for (second, times) in seconds {
            *refusals.entry(minute + second * 1_000).or_default() += times;
        }
    }
    refusals
}
