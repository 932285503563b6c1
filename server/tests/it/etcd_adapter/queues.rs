//! Mutexes and elections: holder, waiters and order; with plain keys and with etcd's own tools.

use std::process::Stdio;

use ::backends::Backend;
use domain::observation::ObservedLock;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;

use super::watched_etcd::{WatchedEtcd, etcdctl, owner, refreshed, remaining_ms, source_of, token};
use testkit::eventually;

#[tokio::test]
async fn the_lowest_create_revision_holds_and_waiters_are_not_locks() {
    // Three in one queue; one row, with two waiters in the order of their create revisions.
    let mut watched = WatchedEtcd::start().await;
    let (holder, revision) = watched.enqueue("/locks/job", "", 60).await;
    let (second, _) = watched.enqueue("/locks/job", "", 50).await;
    let (third, _) = watched.enqueue("/locks/job", "", 40).await;
    let seen = watched.seen().await;
    assert_eq!(seen.names(), [("mutex", "/locks/job")]);
    let lock = seen.lock("mutex", "/locks/job");
    assert_eq!(
        (owner(lock), token(lock)),
        (format!("{holder:x}").as_str(), revision)
    );
    assert_eq!(lock.waiter_count.known(), Some(&2));
    let detail = watched
        .backend
        .inspect(&lock.source, &lock.resource)
        .await
        .unwrap();
    let waiters: Vec<(u32, &str)> = detail
        .waiters
        .iter()
        .map(|waiter| (waiter.position, waiter.owner_id.as_str()))
        .collect();
    assert_eq!(
        waiters,
        [
            (1, format!("{second:x}").as_str()),
            (2, format!("{third:x}").as_str())
        ]
    );
    let left: Vec<i64> = detail
        .waiters
        .iter()
        .map(|waiter| waiter.lease_remaining_ms.unwrap())
        .collect();
    assert!(
        (40_000..=50_000).contains(&left[0]) && (30_000..=40_000).contains(&left[1]),
        "{left:?}"
    );
    assert!(detail.waiters.iter().all(|waiter| waiter.waited_ms.is_unknown()));
}

#[tokio::test]
async fn the_next_waiter_becomes_holder_with_a_higher_token() {
    // The holder's lease is revoked; a hint's refresh already shows the new one.
    let mut watched = WatchedEtcd::start().await;
    let (holder, first) = watched.enqueue("/locks/job", "", 60).await;
    let (next, second) = watched.enqueue("/locks/job", "", 60).await;
    assert_eq!(token(watched.seen().await.lock("mutex", "/locks/job")), first);
    watched.client.lease_revoke(holder).await.unwrap();
    let seen = refreshed(&watched.backend, &[("mutex", "/locks/job")])
        .await
        .unwrap();
    let lock = seen.lock("mutex", "/locks/job");
    assert_eq!((owner(lock), token(lock)), (format!("{next:x}").as_str(), second));
    watched.client.lease_revoke(next).await.unwrap();
    let seen = refreshed(&watched.backend, &[("mutex", "/locks/job")])
        .await
        .unwrap();
    assert!(seen.locks.is_empty());
    assert_eq!(seen.gone.len(), 1);
}

#[tokio::test]
async fn a_key_that_resembles_a_queue_key_is_a_plain_key() {
    // Hex names that are not the key's own lease; keys without a lease; and a queue cut by the prefix, which is
    // reported.
    let mut watched = WatchedEtcd::start().await;
    let lease = watched.lease(60).await;
    let other = watched.lease(60).await;
    watched.put(format!("/locks/a/{other:x}"), "o", lease).await;
    watched.put(format!("/locks/a/{lease:x}"), "o", 0).await;
    watched.put("/locks/a/beef", "o", lease).await;
    let (holder, _) = watched.enqueue("/locks/job", "", 60).await;
    let seen = watched.seen().await;
    let keys = seen.names().iter().filter(|(source, _)| *source == "key").count();
    assert_eq!((keys, seen.locks.len()), (3, 4));
    let prefix = format!("/locks/job/{}", &format!("{holder:x}")[..4]);
    let cut = super::watched_etcd::backend(&[watched.etcd.endpoint()], &[&prefix], |_| {});
    let seen = super::watched_etcd::seen(&cut).await.unwrap();
    let lock = seen.lock("key", &format!("/locks/job/{holder:x}"));
    assert!(
        format!("{:?}", lock.condition).contains("only part of the queue"),
        "{lock:?}"
    );
}

#[tokio::test]
async fn queues_are_grouped_by_their_full_name() {
    // Names that share beginnings, nest, end in a slash, or are the prefix itself.
    let mut watched = WatchedEtcd::start().await;
    for name in [
        "/locks/a",
        "/locks/a/b",
        "/locks/ab",
        "/locks/a-b",
        "/locks",
        "/locks/a/",
    ] {
        watched.enqueue(name, "", 60).await;
        watched.enqueue(name, "", 60).await;
    }
    let seen = watched.seen().await;
    let expected = [
        "/locks",
        "/locks/a",
        "/locks/a-b",
        "/locks/a/",
        "/locks/a/b",
        "/locks/ab",
    ];
    assert_eq!(seen.names(), expected.map(|name| ("mutex", name)));
    for (_, lock) in seen.locks.values() {
        assert_eq!(lock.waiter_count.known(), Some(&1), "{lock:?}");
    }
}

#[tokio::test]
async fn five_thousand_waiters_are_counted_across_pages() {
    // One queue over many pages, between two neighbours: still one holder, the first that came.
    let mut watched = WatchedEtcd::start().await;
    watched.enqueue("/locks/a", "", 600).await;
    let (_, first) = watched.enqueue("/locks/crowd", "first", 600).await;
    let client = watched.client.clone();
    super::scan::in_parallel(5_000, async |_| {
        let mut client = client.clone();
        let lease = client.lease_grant(600, None).await.unwrap().id();
        let options = etcd_client::PutOptions::new().with_lease(lease);
        client
            .put(format!("/locks/crowd/{lease:x}"), "w", Some(options))
            .await
            .unwrap();
    })
    .await;
    watched.enqueue("/locks/z", "", 600).await;
    let seen = watched.seen().await;
    assert_eq!(seen.locks.len(), 3);
    let lock = seen.lock("mutex", "/locks/crowd");
    assert_eq!(
        (owner(lock), token(lock), lock.waiter_count.known()),
        ("first", first, Some(&5_000))
    );
    let detail = watched
        .backend
        .inspect(&lock.source, &lock.resource)
        .await
        .unwrap();
    assert_eq!(detail.waiters.len(), domain::limits::WAITERS_KEPT_MAX);
}

/// `etcdctl lock` or `elect`, and the key it got once it holds.
async fn take(mut command: tokio::process::Command) -> (Child, String) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let key = lines.next_line().await.unwrap().unwrap();
    // Keeps the pipe open: the tool exits when it is closed.
    let rest = lines.into_inner().into_inner();
    child.stdout = Some(rest);
    (child, key)
}

/// A waiter has the owner name under which it will hold the lock, so history recognizes the new holder as a former
/// waiter.
fn first_in_line_holds(before: &ObservedLock, after: &ObservedLock) {
    let first = before.line.first().map(|one| &one.generation);
    assert_eq!(first, after.generation.known());
    assert_eq!((before.line.len(), after.line.len()), (2, 1));
}

#[tokio::test]
async fn etcdctl_lock_and_elect_are_shown_as_in_etcdctl() {
    // Three real `etcdctl lock` and two real `etcdctl elect`; holder and order are compared with the tools' output.
    let watched = WatchedEtcd::start().await;
    let endpoint = watched.etcd.endpoint();
    let lock = || {
        let mut command = etcdctl(&endpoint);
        command.args(["lock", "/locks/deploy", "--ttl", "30"]);
        command
    };
    let (mut first, holder_key) = take(lock()).await;
    let mut queue = vec![holder_key.clone()];
    let mut waiting = Vec::new();
    for n in 1..=2u32 {
        waiting.push(lock().stdout(Stdio::null()).spawn().unwrap());
        eventually("another one waits", async || {
            watched
                .seen()
                .await
                .lock("mutex", "/locks/deploy")
                .waiter_count
                .known()
                == Some(&n)
        })
        .await;
    }
    let (_leader, leader_key) = take({
        let mut command = etcdctl(&endpoint);
        command.args(["elect", "/locks/leader", "node-1"]);
        command
    })
    .await;
    let seen = watched.seen().await;
    assert_eq!(owner(seen.lock("mutex", "/locks/leader")), "node-1");
    assert!(leader_key.starts_with("/locks/leader/"), "{leader_key}");
    let held = seen.lock("mutex", "/locks/deploy");
    assert_eq!(format!("/locks/deploy/{}", owner(held)), holder_key);
    assert!((20_000..=30_000).contains(&remaining_ms(held)), "{held:?}");
    let detail = watched.backend.inspect(&held.source, &held.resource).await;
    let waiters = detail.unwrap().waiters;
    let keys = waiters
        .iter()
        .map(|waiter| format!("/locks/deploy/{}", waiter.owner_id));
    queue.extend(keys);
    let listed = etcdctl(&endpoint)
        .args([
            "get",
            "--prefix",
            "/locks/deploy",
            "--sort-by=CREATE",
            "--order=ASCEND",
            "--keys-only",
        ])
        .output()
        .await
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let listed: Vec<&str> = listed.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(queue, listed);
    // Killed, its lease runs on: it still holds. Its lease revoked, the first waiter does.
    first.kill().await.unwrap();
    let lease = i64::from_str_radix(owner(held), 16).unwrap();
    watched.client.clone().lease_revoke(lease).await.unwrap();
    let after = watched.seen().await;
    assert_eq!(
        format!("/locks/deploy/{}", owner(after.lock("mutex", "/locks/deploy"))),
        queue[1]
    );
    assert_eq!(after.lock("mutex", "/locks/deploy").source, source_of("mutex"));
    first_in_line_holds(held, after.lock("mutex", "/locks/deploy"));
}
