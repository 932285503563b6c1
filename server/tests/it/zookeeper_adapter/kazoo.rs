//! kazoo, the real client: its locks, read-write locks and elections, and its waiters after a forced unlock.

use ::backends::Backend;
use domain::force_release::Release;
use domain::reported::Reported;

use super::watched_zookeeper::{WatchedZookeeper, node};
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;
use crate::support::watching::{SeenLocks, owner, scan};

/// Holds or waits for one lock.
struct KazooLock(LockClient);

impl KazooLock {
    fn start(cluster: &str, kind: &str, path: &str, identifier: &str) -> Self {
        Self(LockClient::start(
            "kazoo_lock.py",
            &[cluster, kind, path, identifier],
        ))
    }

    async fn says(&mut self, word: &str) {
        assert_eq!(self.0.line().await, word);
    }

    async fn let_go(&mut self) {
        self.0.send("").await;
        self.says("released").await;
    }
}

async fn until_seen(
    watched: &WatchedZookeeper,
    what: &str,
    is_seen: impl Fn(&SeenLocks) -> bool,
) -> SeenLocks {
    let mut last = SeenLocks::default();
    testkit::eventually(what, async || {
        last = scan(&watched.backend).await.unwrap();
        is_seen(&last)
    })
    .await;
    last
}

fn waits(seen: &SeenLocks, path: &str, count: u32) -> bool {
    let lock = seen.locks.get(path);
    lock.is_some_and(|(_, lock)| lock.waiter_count == Reported::Value(count))
}

#[tokio::test]
async fn a_forced_unlock_wakes_the_next_waiter_of_kazoo() {
    // A holder and two waiters. The late release of the evicted holder releases nothing, and the queue continues.
    let watched = WatchedZookeeper::start().await;
    let cluster = watched.zookeeper.cluster();
    let start = |identifier| KazooLock::start(&cluster, "Lock", "/locks/job", identifier);
    let mut first = start("worker-1");
    first.says("held").await;
    let mut second = start("worker-2");
    until_seen(&watched, "a waiter of kazoo", |seen| waits(seen, "/locks/job", 1)).await;
    let mut third = start("worker-3");
    let seen = until_seen(&watched, "two waiters of kazoo", |seen| {
        waits(seen, "/locks/job", 2)
    })
    .await;
    assert_eq!(owner(seen.lock("/locks/job")), "worker-1");
    let (source, resource) = node("/locks/job");
    let detail = watched.backend.inspect(&source, &resource).await.unwrap();
    let waiters: Vec<&str> = detail.waiters.iter().map(|one| one.owner_id.as_str()).collect();
    assert_eq!(waiters, ["worker-2", "worker-3"]);
    assert_eq!(
        unlock(&watched.backend, &source, &resource).await,
        Release::Released
    );
    second.says("held").await;
    first.let_go().await;
    let seen = scan(&watched.backend).await.unwrap();
    assert_eq!(owner(seen.lock("/locks/job")), "worker-2");
    second.let_go().await;
    third.says("held").await;
    third.let_go().await;
    assert_eq!(scan(&watched.backend).await.unwrap().names(), [""; 0]);
}

#[tokio::test]
async fn readers_writers_and_leaders_of_kazoo_are_recognised() {
    // Two readers and a waiting writer; an election with a candidate.
    let watched = WatchedZookeeper::start().await;
    let cluster = watched.zookeeper.cluster();
    let mut readers =
        ["reader-1", "reader-2"].map(|name| KazooLock::start(&cluster, "ReadLock", "/locks/rw", name));
    for reader in &mut readers {
        reader.says("held").await;
    }
    let mut writer = KazooLock::start(&cluster, "WriteLock", "/locks/rw", "writer-1");
    let mut leader = KazooLock::start(&cluster, "Election", "/locks/leader", "leader-1");
    leader.says("held").await;
    let seen = until_seen(&watched, "the writer waits", |seen| waits(seen, "/locks/rw", 1)).await;
    assert_eq!(seen.lock("/locks/rw").owner_count, 2);
    assert_eq!(owner(seen.lock("/locks/leader")), "leader-1");
    let (source, resource) = node("/locks/rw");
    assert_eq!(
        unlock(&watched.backend, &source, &resource).await,
        Release::Released
    );
    writer.says("held").await;
    let seen = scan(&watched.backend).await.unwrap();
    assert_eq!(owner(seen.lock("/locks/rw")), "writer-1");
}
