//! Change notifications: the locks that they name, and the watch when the session or the server ends.

use std::sync::Arc;
use std::time::Duration;

use ::backends::Backend;

use super::watched_zookeeper::{WatchedZookeeper, backend, client, enqueue, folder, zookeeper};
use crate::support::proxy::{Link, Proxy};
use crate::support::watching::{Watching, owner, scan};

#[tokio::test]
async fn each_change_names_its_lock() {
    // A path that does not exist yet; joining, new data, leaving, and the lock node itself.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    let mut watching = Watching::start(Arc::new(backend(&watched.zookeeper.cluster(), |_, _| {})));
    watching.live().await;
    folder(client, "/locks/team/job").await;
    let (path, _) = enqueue(client, "/locks/team/job/lock-", "w-1").await;
    watching.named("node", "/locks/team/job").await;
    client.set_data(&path, b"w-2", None).await.unwrap();
    watching.named("node", "/locks/team/job").await;
    client.delete(&path, None).await.unwrap();
    watching.named("node", "/locks/team/job").await;
    enqueue(client, "/locks/team/job/lock-", "w-3").await;
    watching.named("node", "/locks/team/job").await;
}

#[tokio::test]
async fn changes_in_a_chroot_have_names_relative_to_it() {
    // The root of the chroot is the configured path.
    let watched = WatchedZookeeper::start().await;
    let client = &watched.client;
    folder(client, "/app/job").await;
    let chroot = format!("{}/app", watched.zookeeper.cluster());
    let mut watching = Watching::start(Arc::new(backend(&chroot, |_, zookeeper| {
        zookeeper.paths = vec!["/".to_owned()];
    })));
    watching.live().await;
    enqueue(client, "/app/job/lock-", "w-1").await;
    watching.named("node", "/job").await;
}

#[tokio::test]
async fn an_expired_session_watches_again_and_lists() {
    // The connection is silent for longer than the session lasts, and a lock changes meanwhile.
    let zookeeper = zookeeper().await;
    let proxy = Proxy::start(zookeeper.port()).await;
    let direct = client(&zookeeper.cluster()).await;
    folder(&direct, "/locks/job").await;
    let through = format!("127.0.0.1:{}", proxy.port());
    let watched: Arc<dyn Backend> = Arc::new(backend(&through, |config, _| {
        config.timeout = Duration::from_secs(1);
    }));
    let mut watching = Watching::start(watched.clone());
    watching.live().await;
    proxy.set(Link::Blackhole).await;
    watching.reconnecting().await;
    enqueue(&direct, "/locks/job/lock-", "w-1").await;
    watching
        .until("the session is lost", |pending| {
            matches!(&pending.state, Some(domain::backend::WatchState::Reconnecting { why, .. })
                if why.contains("session") || why.contains("no answer"))
        })
        .await;
    proxy.set(Link::Pass).await;
    watching.relist("a resync after the session").await;
    assert_eq!(owner(scan(&*watched).await.unwrap().lock("/locks/job")), "w-1");
    enqueue(&direct, "/locks/job/lock-", "w-2").await;
    watching.named("node", "/locks/job").await;
}

#[tokio::test]
async fn ten_restarts_lose_no_watch() {
    // The server is killed and started ten times; after each the watch resyncs, and the scan finds the lock that was
    // made since.
    let zookeeper = zookeeper().await;
    let watched: Arc<dyn Backend> = Arc::new(backend(&zookeeper.cluster(), |_, _| {}));
    folder(&client(&zookeeper.cluster()).await, "/locks/job").await;
    let mut watching = Watching::start(watched.clone());
    watching.live().await;
    for round in 0..10 {
        zookeeper.kill().await.unwrap();
        watching.reconnecting().await;
        zookeeper.restart().await.unwrap();
        watching.relist("a resync after the restart").await;
        let holder = client(&zookeeper.cluster()).await;
        let path = format!("/locks/round-{round}");
        folder(&holder, &path).await;
        enqueue(&holder, &format!("{path}/lock-"), "w-1").await;
        watching.named("node", &path).await;
        assert_eq!(owner(scan(&*watched).await.unwrap().lock(&path)), "w-1");
    }
}
