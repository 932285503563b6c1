//! The throwaway ZooKeeper.

use std::time::Duration;

use leasehold_testkit::{Throwaway, ZookeeperOptions};
use zookeeper_client::{Acls, Client, CreateMode};

use leasehold_testkit::hangs;

#[tokio::test]
async fn nodes_survive_a_kill_and_a_pause() {
    // Forced to disk before the answer; the same port answers again.
    let zookeeper = Throwaway::zookeeper(ZookeeperOptions::default()).await.unwrap();
    let client = Client::connect(&zookeeper.cluster()).await.unwrap();
    let lasting = CreateMode::Persistent.with_acls(Acls::anyone_all());
    client.create("/locks", b"v", &lasting).await.unwrap();
    zookeeper.kill().await.unwrap();
    zookeeper.restart().await.unwrap();
    let client = Client::connect(&zookeeper.cluster()).await.unwrap();
    assert_eq!(client.get_data("/locks").await.unwrap().0, b"v");
    zookeeper.pause().await.unwrap();
    assert!(hangs(Duration::from_millis(200), client.get_data("/locks")).await);
    zookeeper.resume().await.unwrap();
    assert_eq!(client.get_data("/locks").await.unwrap().0, b"v");
    zookeeper.stop().await.unwrap();
    assert_eq!(zookeeper.pid(), None);
}
