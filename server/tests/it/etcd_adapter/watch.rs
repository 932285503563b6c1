//! Change notifications: the locks that they name, and the watch when etcd compacts, stops, hangs or loses its data.

use std::sync::Arc;
use std::time::Duration;

use ::backends::Backend;
use ::backends::change_notification::Pending;
use ::testkit::Etcd;
use domain::backend::WatchState;
use domain::names::Resource;

use super::watched_etcd::{WatchedEtcd, backend, client, seen, source_of};
use crate::support::proxy::{Link, Proxy};
use crate::support::watching::Watching;
use testkit::eventually;

fn adapter(etcd: &Etcd) -> Arc<dyn Backend> {
    Arc::new(backend(&[etcd.endpoint()], &["/locks/", "/more/"], |_| {}))
}

#[tokio::test]
async fn each_change_is_named_and_queues_by_their_name() {
    // Create, change, delete, expiry; a plain key, one with a numeric name, and places in a queue; both prefixes.
    let mut watched = WatchedEtcd::start().await;
    let mut watching = Watching::start(adapter(&watched.etcd));
    let begun = |pending: &Pending| pending.relist && pending.state == Some(WatchState::Live);
    watching
        .until("live, with a list because there was none", begun)
        .await;
    let lease = watched.lease(60).await;
    watched.put("/locks/a", "o", lease).await;
    watching.named("key", "/locks/a").await;
    watched.client.delete("/locks/a", None).await.unwrap();
    watching.named("key", "/locks/a").await;
    watched.put("/more/12345", "o", lease).await;
    watching.named("key", "/more/12345").await;
    let (holder, _) = watched.enqueue("/locks/job", "", 60).await;
    watching.named("mutex", "/locks/job").await;
    watched.client.lease_revoke(holder).await.unwrap();
    let pending = watching
        .until("the queue", |pending| {
            pending.names.contains(&(source_of("mutex"), "/locks/job".into()))
        })
        .await;
    // A deletion has no lease; the key before it has, so no plain key of that name is notified.
    assert_eq!(pending.names.len(), 1, "{:?}", pending.names);
    let short = watched.lease(1).await;
    watched.put("/locks/short", "o", short).await;
    watching.named("key", "/locks/short").await;
    watching.named("key", "/locks/short").await;
}

#[tokio::test]
async fn a_watch_resumes_from_the_snapshot_without_loss() {
    // Listed, then changed, and only then watched: the change is hinted without a list.
    let mut watched = WatchedEtcd::start().await;
    let adapter = Arc::new(backend(&[watched.etcd.endpoint()], &["/locks/"], |_| {}));
    seen(&adapter).await.unwrap();
    watched.put("/locks/between", "o", 0).await;
    let mut watching = Watching::start(adapter);
    let name = (source_of("key"), Resource::from("/locks/between"));
    let pending = watching
        .until("the key", |pending| pending.names.contains(&name))
        .await;
    assert!(!pending.relist);
}

#[tokio::test]
async fn a_compacted_watch_resyncs_and_continues() {
    // The snapshot's revision is compacted away before the watch begins.
    let mut watched = WatchedEtcd::start().await;
    let adapter = Arc::new(backend(&[watched.etcd.endpoint()], &["/locks/"], |_| {}));
    seen(&adapter).await.unwrap();
    let mut revision = 0;
    for _ in 0..5 {
        revision = watched.put("/locks/a", "o", 0).await;
    }
    watched
        .client
        .compact(i64::try_from(revision).unwrap(), None)
        .await
        .unwrap();
    let mut watching = Watching::start(adapter);
    watching.until("a list", |pending| pending.relist).await;
    watching.live().await;
    watched.put("/locks/b", "o", 0).await;
    watching.named("key", "/locks/b").await;
}

#[tokio::test]
async fn watch_and_calls_survive_ten_restarts() {
    // Killed and started again ten times: each time the watch reconnects, requests a resync, names a new key, and a
    // scan finds it.
    let mut watched = WatchedEtcd::start().await;
    let adapter = Arc::new(backend(&[watched.etcd.endpoint()], &["/locks/"], |_| {}));
    let mut watching = Watching::start(Arc::clone(&adapter) as Arc<dyn Backend>);
    watching.live().await;
    for round in 0..10 {
        watched.etcd.kill().await.unwrap();
        assert!(
            seen(&adapter).await.is_err(),
            "a server that is down must not look like one without locks"
        );
        watching.reconnecting().await;
        watched.etcd.restart().await.unwrap();
        let back = |pending: &Pending| pending.relist && pending.state == Some(WatchState::Live);
        watching.until("live again, with a list", back).await;
        let key = format!("/locks/{round}");
        watched.client = client(&watched.etcd.endpoint()).await;
        watched.put(key.as_str(), "o", 0).await;
        watching.named("key", &key).await;
        let seen = seen(&adapter).await.unwrap();
        assert_eq!(seen.locks.len(), round + 1);
    }
}

#[tokio::test]
async fn a_half_open_connection_is_detected_and_replaced() {
    // The link drops all data without closing: only the missing heartbeat shows it.
    let mut watched = WatchedEtcd::start().await;
    let proxy = Proxy::start(watched.etcd.port()).await;
    let endpoint = format!("http://127.0.0.1:{}", proxy.port());
    let adapter: Arc<dyn Backend> = Arc::new(backend(&[endpoint], &["/locks/"], |config| {
        config.timeout = Duration::from_millis(600);
    }));
    let mut watching = Watching::start(adapter);
    watching.live().await;
    proxy.set(Link::Blackhole).await;
    watching.reconnecting().await;
    proxy.set(Link::Pass).await;
    watching.until("a list", |pending| pending.relist).await;
    watched.put("/locks/after", "o", 0).await;
    watching.named("key", "/locks/after").await;
    assert!(watching.states.contains(&WatchState::Live));
}

#[tokio::test]
async fn a_quiet_watch_stays_live() {
    // Heartbeats are requested and arrive: no reconnect in ten heartbeat intervals without changes.
    let watched = WatchedEtcd::start().await;
    let adapter: Arc<dyn Backend> = Arc::new(backend(&[watched.etcd.endpoint()], &["/locks/"], |config| {
        config.timeout = Duration::from_millis(400);
    }));
    let mut watching = Watching::start(adapter);
    watching.live().await;
    let quiet = tokio::time::timeout(Duration::from_secs(2), watching.reconnecting()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}

#[tokio::test]
async fn a_restored_store_with_a_lower_revision_leads_to_a_resync() {
    // The snapshot is of revision 50 and more; then only an etcd at revision 1 answers, as after a restore.
    let old = WatchedEtcd::start().await;
    let new = WatchedEtcd::start().await;
    let mut client_of_old = old.client.clone();
    for _ in 0..50 {
        client_of_old.put("/locks/a", "o", None).await.unwrap();
    }
    let adapter = Arc::new(backend(
        &[old.etcd.endpoint(), new.etcd.endpoint()],
        &["/locks/"],
        |_| {},
    ));
    seen(&adapter).await.unwrap();
    old.etcd.kill().await.unwrap();
    let mut watching = Watching::start(adapter);
    watching.until("a list", |pending| pending.relist).await;
    watching.live().await;
    new.client.clone().put("/locks/fresh", "o", None).await.unwrap();
    watching.named("key", "/locks/fresh").await;
}

#[tokio::test]
async fn lost_and_repeated_events_leave_no_difference_to_a_scan() {
    // Changes while the link is cut repeatedly: a mirror that follows notifications and resyncs equals etcd at rest.
    let mut watched = WatchedEtcd::start().await;
    let proxy = Proxy::start(watched.etcd.port()).await;
    let endpoint = format!("http://127.0.0.1:{}", proxy.port());
    let adapter = Arc::new(backend(&[endpoint], &["/locks/"], |config| {
        config.timeout = Duration::from_secs(2)
    }));
    let mut watching = Watching::start(Arc::clone(&adapter) as Arc<dyn Backend>);
    watching.live().await;
    for round in 0..5 {
        for n in 0..40 {
            let key = format!("/locks/{}", (n * 7 + round) % 25);
            if n % 3 == 0 {
                watched.client.delete(key, None).await.unwrap();
            } else {
                watched.put(key, format!("{round}-{n}"), 0).await;
            }
            if n == 20 {
                proxy.set(Link::Cut).await;
                proxy.set(Link::Pass).await;
            }
        }
        watching
            .until("a list after the cut", |pending| pending.relist)
            .await;
    }
    let mirror = seen(&adapter).await.unwrap();
    watched.put("/locks/last", "o", 0).await;
    watching.named("key", "/locks/last").await;
    eventually("the same as etcd", async || {
        let direct = watched.seen().await;
        direct.locks.len() == mirror.locks.len() + 1
            && mirror
                .locks
                .iter()
                .all(|(name, (_, lock))| direct.locks.get(name).map(|found| &found.1) == Some(lock))
    })
    .await;
}
