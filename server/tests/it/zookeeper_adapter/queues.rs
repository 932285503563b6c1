//! Nodes as the adapter reports them: locks, queues, readers, folders, and nodes that are no locks.

use std::time::Duration;

use ::backends::Backend;
use domain::observation::{Lifetime, ObservedCondition};
use domain::reported::Reported;
use zookeeper_client::{Acls, CreateMode};

use super::watched_zookeeper::{WatchedZookeeper, backend, contender, enqueue, folder, node};
use crate::support::watching::{owner, refresh, scan, token};

#[tokio::test]
async fn contenders_of_known_clients_queue_in_order() {
    // Curator's names, kazoo's and plain ones, in folders of one and two levels; an empty lock node.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    for path in [
        "/locks/curator",
        "/locks/kazoo",
        "/locks/team/plain",
        "/locks/empty",
    ] {
        folder(client, path).await;
    }
    let guid = |n: u8| format!("_c_0b5e3c1e-8d2e-4a52-9d9c-3f3d5f3e7a{n:02x}-lock-");
    let (_, first) = enqueue(client, &format!("/locks/curator/{}", guid(9)), "10.0.0.7").await;
    // Sorted by name, this one comes first.
    enqueue(client, &format!("/locks/curator/{}", guid(1)), "10.0.0.8").await;
    enqueue(
        client,
        "/locks/kazoo/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa__lock__",
        "w-1",
    )
    .await;
    enqueue(client, "/locks/team/plain/lock-", r#"{"ownerId":"w-2"}"#).await;
    let seen = scan(&watched.backend).await.unwrap();
    assert!(seen.is_whole(), "{:?}", seen.pass);
    assert_eq!(
        seen.names(),
        ["/locks/curator", "/locks/kazoo", "/locks/team/plain"]
    );
    let lock = seen.lock("/locks/curator");
    assert_eq!(owner(lock), "10.0.0.7");
    assert_eq!(token(lock), u64::try_from(first.czxid).unwrap());
    assert_eq!(lock.waiter_count, Reported::Value(1));
    let session = format!("0x{:x}", client.session_id().0);
    assert_eq!(lock.lease_id, Reported::Value(session.into_boxed_str()));
    assert_eq!(owner(seen.lock("/locks/team/plain")), "w-2");
    // Times are unknown, which is not the same as no TTL.
    let Lifetime::SessionTtl { ttl_ms, why } = &lock.lifetime else {
        panic!("{:?}", lock.lifetime)
    };
    assert!(ttl_ms.is_unknown() && why.contains("timeout of a session"));
    let (source, resource) = node("/locks/curator");
    let detail = watched.backend.inspect(&source, &resource).await.unwrap();
    assert_eq!(detail.waiters[0].owner_id.as_str(), "10.0.0.8");
    assert_eq!(detail.lock.unwrap().generation, lock.generation);
}

#[tokio::test]
async fn readers_before_the_first_writer_share_a_row() {
    // kazoo's, Curator's and the recipe's readers and writers; the leases of a semaphore all hold.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    let guid = "0123456789abcdef0123456789abcdef";
    let queues = [
        (
            "/locks/kazoo",
            format!("{guid}__rlock__"),
            format!("{guid}__lock__"),
        ),
        ("/locks/curator", "__READ__".to_owned(), "__WRIT__".to_owned()),
        ("/locks/recipe", "read-".to_owned(), "write-".to_owned()),
    ];
    for (path, reader, writer) in &queues {
        folder(client, path).await;
        enqueue(client, &format!("{path}/{reader}"), "r-1").await;
        enqueue(client, &format!("{path}/{reader}"), "r-2").await;
        enqueue(client, &format!("{path}/{writer}"), "w-1").await;
        enqueue(client, &format!("{path}/{reader}"), "r-3").await;
    }
    folder(client, "/locks/semaphore/leases").await;
    for owner in ["s-1", "s-2"] {
        enqueue(client, "/locks/semaphore/leases/lease-", owner).await;
    }
    let seen = scan(&watched.backend).await.unwrap();
    for (path, ..) in &queues {
        let lock = seen.lock(path);
        assert_eq!((owner(lock), lock.owner_count), ("r-1", 2), "{path}");
        assert_eq!(lock.waiter_count, Reported::Value(2), "{path}");
        let (source, resource) = node(path);
        let detail = watched.backend.inspect(&source, &resource).await.unwrap();
        let owners: Vec<&str> = detail.owners.iter().map(|owner| owner.as_str()).collect();
        assert_eq!(owners, ["r-1", "r-2"]);
        let waiters: Vec<&str> = detail.waiters.iter().map(|one| one.owner_id.as_str()).collect();
        assert_eq!(waiters, ["w-1", "r-3"]);
    }
    let semaphore = seen.lock("/locks/semaphore/leases");
    assert_eq!(semaphore.owner_count, 2);
    let sharers = semaphore.sharers.iter();
    let owners: Vec<&str> = sharers.map(|one| one.owner.as_ref().unwrap().as_str()).collect();
    assert_eq!(owners, ["s-1", "s-2"]);
    assert_eq!(
        semaphore.sharers[0].token.as_ref(),
        semaphore.fencing_token.known()
    );
}

#[tokio::test]
async fn a_wrapped_counter_keeps_the_order() {
    // Across 2147483647 and across 0; the sorted names would be in another order.
    let watched = WatchedZookeeper::start().await;
    for (path, names) in [
        (
            "/locks/high",
            ["lock-2147483646", "lock-2147483647", "lock--2147483648"],
        ),
        (
            "/locks/zero",
            ["lock--000000002", "lock--000000001", "lock-0000000000"],
        ),
    ] {
        folder(&watched.client, path).await;
        // Not created in this order.
        for at in [2, 0, 1] {
            contender(&watched.client, &format!("{path}/{}", names[at]), names[at]).await;
        }
        let (source, resource) = node(path);
        let detail = watched.backend.inspect(&source, &resource).await.unwrap();
        assert_eq!(owner(&detail.lock.unwrap()), names[0]);
        let waiters: Vec<&str> = detail.waiters.iter().map(|one| one.owner_id.as_str()).collect();
        assert_eq!(waiters, names[1..]);
    }
}

#[tokio::test]
async fn only_ephemeral_sequential_children_contend() {
    // The items of a queue and a lock below one of them; members without a sequence; data that name no owner; data of
    // 64 KiB and more.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    folder(client, "/locks/queue").await;
    let item = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
    for _ in 0..2 {
        client.create("/locks/queue/item-", b"job", &item).await.unwrap();
    }
    enqueue(client, "/locks/queue/item-0000000001/lock-", "w-1").await;
    folder(client, "/locks/members").await;
    contender(client, "/locks/members/host-1", "host-1").await;
    for (path, data) in [
        ("/locks/binary", "\0\u{1}".to_owned()),
        ("/locks/large", "x".repeat(64 * 1024 + 1)),
    ] {
        folder(client, path).await;
        enqueue(client, &format!("{path}/lock-"), &data).await;
    }
    let seen = scan(&watched.backend).await.unwrap();
    assert_eq!(
        seen.names(),
        ["/locks/binary", "/locks/large", "/locks/queue/item-0000000001"]
    );
    let by_session = format!("session:0x{:x}", client.session_id().0);
    assert_eq!(owner(seen.lock("/locks/binary")), by_session);
    let large = seen.lock("/locks/large");
    assert_eq!(owner(large), by_session);
    assert!(matches!(&large.condition, Some(ObservedCondition::Note { why }) if why.contains("64 KiB")));
    // New data are read although the node is the same.
    let (path, _) = enqueue(client, "/locks/queue/lock-", "before").await;
    assert_eq!(
        owner(scan(&watched.backend).await.unwrap().lock("/locks/queue")),
        "before"
    );
    client.set_data(&path, b"after", None).await.unwrap();
    assert_eq!(
        owner(scan(&watched.backend).await.unwrap().lock("/locks/queue")),
        "after"
    );
}

#[tokio::test]
async fn a_lock_node_named_by_ten_digits_is_no_contender() {
    // A container, as Curator makes the nodes of its locks; a node with a TTL. Both have an owner that is no session.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    folder(client, "/locks").await;
    let container = CreateMode::Container.with_acls(Acls::anyone_all());
    let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let lasting = lasting.with_ttl(Duration::from_secs(3_600));
    let paths = ["/locks/order-1764328287", "/locks/order-1764328288"];
    for (path, options) in paths.into_iter().zip([container, lasting]) {
        client.create(path, b"", &options).await.unwrap();
        enqueue(client, &format!("{path}/lock-"), "w-1").await;
    }
    let seen = scan(&watched.backend).await.unwrap();
    assert!(seen.is_whole(), "{:?}", seen.pass);
    assert_eq!(seen.names(), paths);
}

#[tokio::test]
async fn names_are_relative_to_the_chroot() {
    // The same node through a chroot; a refresh by name; names outside the paths.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/app/locks/job").await;
    enqueue(&watched.client, "/app/locks/job/lock-", "w-1").await;
    let chrooted = backend(&format!("{}/app", watched.zookeeper.cluster()), |_, _| {});
    assert_eq!(scan(&chrooted).await.unwrap().names(), ["/locks/job"]);
    let seen = refresh(
        &chrooted,
        "node",
        &["/locks/job", "/locks/none", "/app/locks/job"],
    )
    .await
    .unwrap();
    assert_eq!(seen.names(), ["/locks/job"]);
    assert_eq!(seen.gone.len(), 2);
}

#[tokio::test]
async fn a_folder_named_zookeeper_in_a_chroot_is_read() {
    // Without a chroot that path has ZooKeeper's own nodes, which are left out.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/app/zookeeper/job").await;
    enqueue(&watched.client, "/app/zookeeper/job/lock-", "w-1").await;
    let chroot = format!("{}/app", watched.zookeeper.cluster());
    let chrooted = backend(&chroot, |_, zookeeper| zookeeper.paths = vec!["/".to_owned()]);
    assert_eq!(scan(&chrooted).await.unwrap().names(), ["/zookeeper/job"]);
}

#[tokio::test]
async fn a_lock_ends_with_the_session_of_its_holder() {
    // The holder's session closes: the next one holds. A lost session is closed by the server.
    let watched = WatchedZookeeper::start().await;
    folder(&watched.client, "/locks/job").await;
    let holder = super::watched_zookeeper::client(&watched.zookeeper.cluster()).await;
    enqueue(&holder, "/locks/job/lock-", "first").await;
    enqueue(&watched.client, "/locks/job/lock-", "second").await;
    let before = scan(&watched.backend).await.unwrap();
    assert_eq!(owner(before.lock("/locks/job")), "first");
    let line = before.lock("/locks/job").line[0].generation.clone();
    drop(holder);
    testkit::eventually("the next one holds", async || {
        let seen = scan(&watched.backend).await.unwrap();
        let lock = seen.lock("/locks/job");
        owner(lock) == "second" && lock.generation == Reported::Value(line.clone())
    })
    .await;
}
