//! Forced unlocks: the holder's node by its czxid, and never the next holder's, even where a name is given again.

use std::cell::Cell;
use std::time::Duration;

use ::backends::{Backend, no_release};
use domain::force_release::Release;
use domain::generation::Generation;
use zookeeper_client::{Acls, Client, CreateMode, Error};

use super::watched_zookeeper::{WatchedZookeeper, backend, enqueue, folder, node, unlocker};
use crate::support::proxy::Proxy;
use crate::support::unlocking::{Users, act, generation, lose_answers, race, unlock};
use crate::support::watching::{owner, scan};

async fn exists(client: &Client, path: &str) -> bool {
    client.check_stat(path).await.unwrap().is_some()
}

#[tokio::test]
async fn the_next_in_the_queue_holds_after_the_holder_was_unlocked() {
    // Three in a queue; the holder's session and its other node stay; the old generation is refused then.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    folder(client, "/locks/job").await;
    folder(client, "/locks/other").await;
    let (first, _) = enqueue(client, "/locks/job/lock-", "w-1").await;
    let (other, _) = enqueue(client, "/locks/other/lock-", "w-1").await;
    enqueue(client, "/locks/job/lock-", "w-2").await;
    let (source, resource) = node("/locks/job");
    let seen = watched.backend.inspect(&source, &resource).await.unwrap();
    let radius = seen.blast_radius.known().unwrap();
    assert_eq!(radius.next.as_ref().unwrap().as_str(), "w-2");
    assert!(radius.dies.is_empty());
    let old = generation(&watched.backend, &source, &resource).await;
    let release = async || {
        watched
            .backend
            .release(&source, &resource, &old, &act())
            .await
            .unwrap()
    };
    assert_eq!(release().await, Release::Released);
    assert!(!exists(client, &first).await && exists(client, &other).await);
    let Release::HolderChanged { now } = release().await else {
        panic!("the next one holds it")
    };
    assert_eq!(now.owner_id.known().unwrap().as_str(), "w-2");
    // Nothing of the console's own is left in the queue.
    let children = client.list_children("/locks/job").await.unwrap();
    assert_eq!(children.len(), 1, "{children:?}");
    assert_eq!(
        unlock(&watched.backend, &source, &resource).await,
        Release::Released
    );
    assert_eq!(release().await, Release::AlreadyFree);
}

#[tokio::test]
async fn a_release_in_a_chroot_ends_no_lock_outside_it() {
    // The same path inside and outside; then a lock directly below the chroot, whose root is the configured path.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    let [inside, outside] = ["/app/locks/job", "/locks/job"];
    let mut held = Vec::new();
    for path in [inside, outside, "/app/top"] {
        folder(client, path).await;
        held.push(enqueue(client, &format!("{path}/lock-"), "w-1").await.0);
    }
    let chroot = format!("{}/app", watched.zookeeper.cluster());
    let (source, resource) = node("/locks/job");
    let chrooted = unlocker(&chroot);
    assert_eq!(unlock(&chrooted, &source, &resource).await, Release::Released);
    assert!(!exists(client, &held[0]).await && exists(client, &held[1]).await);
    let whole = backend(&chroot, |config, zookeeper| {
        config.timeout = Duration::from_secs(10);
        zookeeper.paths = vec!["/".to_owned()];
        zookeeper.unlock_user = Some("leasehold-unlock".to_owned());
    });
    assert_eq!(scan(&whole).await.unwrap().names(), ["/top"]);
    let (source, resource) = node("/top");
    assert_eq!(unlock(&whole, &source, &resource).await, Release::Released);
    assert!(!exists(client, &held[2]).await && exists(client, &held[1]).await);
}

#[tokio::test]
async fn all_readers_of_a_row_are_released_or_none() {
    // Two readers; with a third one the reviewed holding is another one; then all three.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    folder(client, "/locks/rw").await;
    for owner in ["r-1", "r-2"] {
        enqueue(client, "/locks/rw/read-", owner).await;
    }
    let (source, resource) = node("/locks/rw");
    let two = generation(&watched.backend, &source, &resource).await;
    enqueue(client, "/locks/rw/read-", "r-3").await;
    enqueue(client, "/locks/rw/write-", "w-1").await;
    let changed = watched
        .backend
        .release(&source, &resource, &two, &act())
        .await
        .unwrap();
    assert!(matches!(changed, Release::HolderChanged { .. }), "{changed:?}");
    let seen = watched.backend.inspect(&source, &resource).await.unwrap();
    let radius = seen.blast_radius.known().unwrap();
    assert!(radius.warnings[0].contains("3 readers"), "{radius:?}");
    assert_eq!(
        unlock(&watched.backend, &source, &resource).await,
        Release::Released
    );
    let after = scan(&watched.backend).await.unwrap();
    assert_eq!(owner(after.lock("/locks/rw")), "w-1");
}

#[tokio::test]
async fn without_account_or_path_release_is_refused() {
    // No `unlock_user`; a name outside the paths.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/locks/job").await;
    enqueue(&watched.client, "/locks/job/lock-", "w-1").await;
    let watcher = backend(&watched.zookeeper.cluster(), |_, _| {});
    assert!(no_release(&watcher).unwrap().contains("unlock_user"));
    let (source, resource) = node("/locks/job");
    let answer = unlock(&watcher, &source, &resource).await;
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("unlock_user")),
        "{answer:?}"
    );
    assert_eq!(no_release(&watched.backend), None);
    let seen = generation(&watched.backend, &source, &resource).await;
    let (_, stranger) = node("/elsewhere/job");
    let answer = watched
        .backend
        .release(&source, &stranger, &seen, &act())
        .await
        .unwrap();
    assert!(
        matches!(&answer, Release::Refused { why, .. } if why.contains("configured path")),
        "{answer:?}"
    );
}

/// Clients that create the lock node, hold the lock, and delete the node with it: the next holder gets the same name.
struct Recreating {
    client: Client,
    count: Cell<usize>,
}

impl Users for Recreating {
    type Held = String;

    async fn take(&self) -> Option<(String, String)> {
        let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
        match self.client.create("/locks/race", b"", &lasting).await {
            Ok(_) => {}
            // Another one holds it, or is about to.
            Err(Error::NodeExists) => return None,
            Err(error) => panic!("{error}"),
        }
        self.count.set(self.count.get() + 1);
        let owner = format!("w-{}", self.count.get());
        let contender = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let created = self
            .client
            .create("/locks/race/lock-", owner.as_bytes(), &contender);
        let (_, sequence) = created.await.unwrap();
        Some((owner, format!("/locks/race/lock-{sequence}")))
    }

    async fn give_back(&self, held: String) -> bool {
        let was_held = match self.client.delete(&held, None).await {
            Ok(()) => true,
            Err(Error::NoNode) => false,
            Err(error) => panic!("{error}"),
        };
        // A forced unlock in progress is in the queue for a moment.
        while let Err(error) = self.client.delete("/locks/race", None).await {
            assert_eq!(error, Error::NotEmpty);
            tokio::task::yield_now().await;
        }
        was_held
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_unlocks_never_hit_the_next_holder_of_the_same_name() {
    // The lock node is deleted after each holding, so that its counter starts again and the names repeat.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/locks").await;
    let users = Recreating {
        client: watched.client.clone(),
        count: Cell::new(0),
    };
    let (source, resource) = node("/locks/race");
    race(&watched.backend, &source, &resource, &users).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_an_unknown_outcome() {
    // The transaction's answer stops in the proxy.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/locks/job").await;
    let proxy = Proxy::start(watched.zookeeper.port()).await;
    let through = backend(&format!("127.0.0.1:{}", proxy.port()), |config, zookeeper| {
        config.timeout = Duration::from_millis(600);
        zookeeper.unlock_user = Some("leasehold-unlock".to_owned());
    });
    let direct = unlocker(&watched.zookeeper.cluster());
    let (source, resource) = node("/locks/job");
    let held = std::cell::RefCell::new(String::new());
    let take = async || -> Generation {
        // What an earlier attempt left.
        let old = held.take();
        if !old.is_empty() {
            let _ = watched.client.delete(&old, None).await;
        }
        testkit::eventually("sessions of earlier attempts end", async || {
            watched
                .client
                .list_children("/locks/job")
                .await
                .unwrap()
                .is_empty()
        })
        .await;
        let (path, _) = enqueue(&watched.client, "/locks/job/lock-", "w-1").await;
        held.replace(path);
        generation(&direct, &source, &resource).await
    };
    let is_held = async || {
        let path = held.borrow().clone();
        exists(&watched.client, &path).await
    };
    lose_answers(&through, &proxy, (&source, &resource), take, is_held).await;
}
