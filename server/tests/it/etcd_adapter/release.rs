//! Forced unlocks: one key in one transaction, even with other keys on the same lease, and never the next holder's.

use std::cell::Cell;
use std::time::Duration;

use ::backends::etcd::EtcdBackend;
use ::backends::{Backend, no_release};
use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use etcd_client::{AlarmAction, AlarmType, Client, Compare, CompareOp, PutOptions, Txn, TxnOp};

use super::watched_etcd::{WatchedEtcd, backend, source_of, try_backend_with};
use crate::support::proxy::Proxy;
use crate::support::unlocking::{Users, act, generation, lose_answers, race, unlock};

/// An adapter that may unlock; etcd has authentication off, so that its name is all there is to the account.
fn unlocker(endpoint: String) -> EtcdBackend {
    try_backend_with(
        &[endpoint],
        &["/locks/"],
        |config| config.timeout = Duration::from_secs(10),
        |etcd| etcd.unlock_user = Some("leasehold-unlock".to_owned()),
    )
    .unwrap()
}

fn key(name: &str) -> (Source, Resource) {
    (source_of("key"), name.into())
}

fn mutex(name: &str) -> (Source, Resource) {
    (source_of("mutex"), name.into())
}

async fn is_there(watched: &WatchedEtcd, key: &str) -> bool {
    let found = watched.client.kv_client().get(key, None).await.unwrap();
    found.count() > 0
}

#[tokio::test]
async fn only_the_key_is_deleted_and_its_lease_stays() {
    // Two keys on one lease; the unlock names the other key, and reports "free" when repeated.
    let mut watched = WatchedEtcd::start().await;
    let etcd = unlocker(watched.etcd.endpoint());
    let lease = watched.lease(60).await;
    watched.put("/locks/a", "w1", lease).await;
    watched.put("/locks/b", "w1", lease).await;
    let (source, resource) = key("/locks/a");
    let seen = etcd.inspect(&source, &resource).await.unwrap();
    let radius = seen.blast_radius.known().unwrap();
    assert!(radius.dies.is_empty(), "{radius:?}");
    assert!(
        radius.warnings.iter().any(|line| line.contains("1 other key")),
        "{radius:?}"
    );
    let seen = generation(&etcd, &source, &resource).await;
    let release = || async { etcd.release(&source, &resource, &seen, &act()).await.unwrap() };
    assert_eq!(release().await, Release::Released);
    assert!(!is_there(&watched, "/locks/a").await && is_there(&watched, "/locks/b").await);
    let left = watched
        .client
        .lease_client()
        .time_to_live(lease, None)
        .await
        .unwrap();
    assert!(left.ttl() > 0);
    assert_eq!(release().await, Release::AlreadyFree);
}

#[tokio::test]
async fn an_unlock_on_a_corrupt_cluster_names_the_alarm() {
    // With this alarm etcd refuses every write.
    let mut watched = WatchedEtcd::start().await;
    let etcd = unlocker(watched.etcd.endpoint());
    watched.put("/locks/a", "w1", 0).await;
    let (action, alarm) = (AlarmAction::Activate, AlarmType::Corrupt);
    watched.client.alarm(action, alarm, None).await.unwrap();
    let (source, resource) = key("/locks/a");
    let answer = unlock(&etcd, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, remedy } if why.contains("CORRUPT") && remedy.contains("alarm disarm")),
        "{answer:?}"
    );
    assert!(is_there(&watched, "/locks/a").await);
}

#[tokio::test]
async fn the_next_in_the_queue_holds_after_the_holder_was_unlocked() {
    // Three in a mutex; then the old generation no longer exists, and the new holder stays.
    let mut watched = WatchedEtcd::start().await;
    let etcd = unlocker(watched.etcd.endpoint());
    let (first, _) = watched.enqueue("/locks/job", "w1", 60).await;
    watched.enqueue("/locks/job", "w2", 60).await;
    watched.enqueue("/locks/job", "w3", 60).await;
    // A neighbour on the holder's lease.
    watched.put("/locks/other", "w1", first).await;
    let (source, resource) = mutex("/locks/job");
    let seen = etcd.inspect(&source, &resource).await.unwrap();
    let radius = seen.blast_radius.known().unwrap();
    assert_eq!(radius.next.as_ref().unwrap().as_str(), "w2");
    let old = generation(&etcd, &source, &resource).await;
    assert_eq!(
        etcd.release(&source, &resource, &old, &act()).await.unwrap(),
        Release::Released
    );
    let Release::HolderChanged { now } = etcd.release(&source, &resource, &old, &act()).await.unwrap() else {
        panic!("the next one holds it")
    };
    assert_eq!(now.owner_id.known().unwrap().as_str(), "w2");
    assert!(is_there(&watched, "/locks/other").await);
    let queue = etcd.inspect(&source, &resource).await.unwrap();
    assert_eq!(queue.waiters.len(), 1);
}

#[tokio::test]
async fn a_proclaiming_leader_keeps_its_generation() {
    // A new value under the same place in the queue is no new holding.
    let mut watched = WatchedEtcd::start().await;
    let etcd = unlocker(watched.etcd.endpoint());
    let (lease, _) = watched.enqueue("/locks/leader", "one", 60).await;
    let (source, resource) = mutex("/locks/leader");
    let old = generation(&etcd, &source, &resource).await;
    watched
        .put(format!("/locks/leader/{lease:x}"), "two", lease)
        .await;
    assert_eq!(generation(&etcd, &source, &resource).await, old);
    assert_eq!(
        etcd.release(&source, &resource, &old, &act()).await.unwrap(),
        Release::Released
    );
}

#[tokio::test]
async fn a_new_holder_of_the_key_is_not_touched() {
    // Between review and release: overwritten by another owner (same create revision), deleted and created again by
    // the same owner (same value). A rewrite by the same owner is the same holding.
    let mut watched = WatchedEtcd::start().await;
    let etcd = unlocker(watched.etcd.endpoint());
    let (source, resource) = key("/locks/a");
    watched.put("/locks/a", r#"{"ownerId":"w1","beat":1}"#, 0).await;
    let old = generation(&etcd, &source, &resource).await;
    watched.put("/locks/a", r#"{"ownerId":"w1","beat":2}"#, 0).await;
    assert_eq!(generation(&etcd, &source, &resource).await, old);
    watched.put("/locks/a", r#"{"ownerId":"w2","beat":1}"#, 0).await;
    let answer = etcd.release(&source, &resource, &old, &act()).await.unwrap();
    assert!(
        matches!(&answer, Release::HolderChanged { now } if now.owner_id.known().unwrap().as_str() == "w2"),
        "{answer:?}"
    );
    let old = generation(&etcd, &source, &resource).await;
    watched.client.delete("/locks/a", None).await.unwrap();
    watched.put("/locks/a", r#"{"ownerId":"w2","beat":1}"#, 0).await;
    let answer = etcd.release(&source, &resource, &old, &act()).await.unwrap();
    assert!(matches!(answer, Release::HolderChanged { .. }), "{answer:?}");
    assert!(is_there(&watched, "/locks/a").await);
    watched.put("/elsewhere", "w2", 0).await;
    let (source, stranger) = key("/elsewhere");
    let answer = etcd.release(&source, &stranger, &old, &act()).await.unwrap();
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("configured prefix")),
        "{answer:?}"
    );
}

#[tokio::test]
async fn without_account_or_complete_queue_release_is_refused() {
    // No `unlock_user`; and a prefix that cuts a queue, whose key may be a waiter's.
    let mut watched = WatchedEtcd::start().await;
    let (lease, _) = watched.enqueue("/locks/job", "w1", 60).await;
    let (source, resource) = mutex("/locks/job");
    let watcher = backend(&[watched.etcd.endpoint()], &["/locks/"], |_| {});
    assert!(no_release(&watcher).unwrap().contains("unlock_user"));
    let answer = unlock(&watcher, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("unlock_user")),
        "{answer:?}"
    );
    let cutting = try_backend_with(
        &[watched.etcd.endpoint()],
        &["/locks/job/"],
        |_| {},
        |etcd| etcd.unlock_user = Some("u".to_owned()),
    )
    .unwrap();
    assert_eq!(no_release(&cutting), None);
    // The prefix shows the whole queue here; one character more cuts it.
    let half = format!("/locks/job/{}", &format!("{lease:x}")[..2]);
    let cutting_more = try_backend_with(
        &[watched.etcd.endpoint()],
        &[&half],
        |_| {},
        |etcd| etcd.unlock_user = Some("u".to_owned()),
    )
    .unwrap();
    let (source, resource) = key(&format!("/locks/job/{lease:x}"));
    let seen = cutting_more.inspect(&source, &resource).await.unwrap();
    assert!(seen.blast_radius.is_unknown());
    let answer = unlock(&cutting_more, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("queue")),
        "{answer:?}"
    );
}

/// Acquires one key as clients do: if it does not exist, on a lease, with a value of its own.
struct Takers {
    client: Client,
    lease: i64,
    count: Cell<u32>,
}

impl Users for Takers {
    type Held = i64;

    async fn take(&self) -> Option<(String, i64)> {
        let owner = format!("w{}", self.count.replace(self.count.get() + 1));
        let put = TxnOp::put(
            "/locks/race",
            owner.clone(),
            Some(PutOptions::new().with_lease(self.lease)),
        );
        let free = Compare::create_revision("/locks/race", CompareOp::Equal, 0);
        let taken = self
            .client
            .kv_client()
            .txn(Txn::new().when([free]).and_then([put]))
            .await
            .unwrap();
        let revision = taken.header().unwrap().revision();
        taken.succeeded().then_some((owner, revision))
    }

    async fn give_back(&self, revision: i64) -> bool {
        let mine = Compare::create_revision("/locks/race", CompareOp::Equal, revision);
        let delete = TxnOp::delete("/locks/race", None);
        let gone = self
            .client
            .kv_client()
            .txn(Txn::new().when([mine]).and_then([delete]))
            .await
            .unwrap();
        gone.succeeded()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_unlocks_never_hit_the_next_holder() {
    // Clients acquire and release continuously; every holding that was cut short is one that an unlock reports.
    let mut watched = WatchedEtcd::start().await;
    let etcd = unlocker(watched.etcd.endpoint());
    let lease = watched.lease(600).await;
    let users = Takers {
        client: watched.client.clone(),
        lease,
        count: Cell::new(0),
    };
    let (source, resource) = key("/locks/race");
    race(&etcd, &source, &resource, &users).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_an_unknown_outcome() {
    // The transaction's answer stops in the proxy.
    let watched = WatchedEtcd::start().await;
    let proxy = Proxy::start(watched.etcd.port()).await;
    let through = try_backend_with(
        &[format!("http://127.0.0.1:{}", proxy.port())],
        &["/locks/"],
        |config| config.timeout = Duration::from_millis(600),
        |etcd| etcd.unlock_user = Some("leasehold-unlock".to_owned()),
    )
    .unwrap();
    let direct = unlocker(watched.etcd.endpoint());
    let (source, resource) = key("/locks/a");
    let take = async || -> Generation {
        watched
            .client
            .kv_client()
            .put("/locks/a", "w1", None)
            .await
            .unwrap();
        generation(&direct, &source, &resource).await
    };
    let is_held = async || is_there(&watched, "/locks/a").await;
    lose_answers(&through, &proxy, (&source, &resource), take, is_held).await;
}
