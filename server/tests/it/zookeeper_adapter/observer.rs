//! A server that is behind its leader: it answers reads by itself, and every reading waits until it has caught up.

use std::time::Duration;

use ::backends::Backend;
use ::testkit::{Throwaway, Zookeeper, ZookeeperOptions, free_port};
use domain::force_release::Release;
use zookeeper_client::Client;

use super::watched_zookeeper::{client, enqueue, folder, node, unlocker};
use crate::support::proxy::{Link, Proxy};
use crate::support::unlocking::{act, generation};
use crate::support::watching::{owner, refresh, scan};

/// Delay of each message between the observer and its leader.
const LAG: Duration = Duration::from_millis(300);

/// A leader without followers, and an observer.
struct Ensemble {
    leader: Zookeeper,
    observer: Zookeeper,
    /// From the observer to its leader.
    link: Proxy,
    /// Of the leader.
    client: Client,
}

impl Ensemble {
    async fn start() -> Self {
        let [quorum, election, own_quorum, own_election] = std::array::from_fn(|_| free_port().unwrap());
        let member = async |id: u8, leader_port: u16| {
            let config = vec![
                format!("server.1=127.0.0.1:{leader_port}:{election}:participant"),
                format!("server.2=127.0.0.1:{own_quorum}:{own_election}:observer"),
            ];
            let options = ZookeeperOptions { config, id: Some(id) };
            Throwaway::zookeeper(options).await.unwrap()
        };
        let leader = member(1, quorum).await;
        let link = Proxy::start(quorum).await;
        let observer = member(2, link.port()).await;
        Self {
            client: client(&leader.cluster()).await,
            leader,
            observer,
            link,
        }
    }

    /// Another holder, known to the leader alone.
    async fn replace_holder(&self, old: Option<String>, owner: &str) -> String {
        if let Some(old) = old {
            self.client.delete(&old, None).await.unwrap();
        }
        enqueue(&self.client, "/locks/job/lock-", owner).await.0
    }
}

#[tokio::test]
async fn a_server_behind_its_leader_shows_no_old_holder() {
    // The holder changes before each reading: a scan, a reading by name, one of a lock with its detail, and a forced unlock.
    let ensemble = Ensemble::start().await;
    folder(&ensemble.client, "/locks/job").await;
    let (source, resource) = node("/locks/job");
    let behind = unlocker(&ensemble.observer.cluster());
    assert!(scan(&behind).await.unwrap().names().is_empty());
    ensemble.link.set(Link::Slow(LAG)).await;
    let held = ensemble.replace_holder(None, "w-1").await;
    assert_eq!(owner(scan(&behind).await.unwrap().lock("/locks/job")), "w-1");
    let held = ensemble.replace_holder(Some(held), "w-2").await;
    let named = refresh(&behind, "node", &["/locks/job"]).await.unwrap();
    assert_eq!(owner(named.lock("/locks/job")), "w-2");
    let held = ensemble.replace_holder(Some(held), "w-3").await;
    let detail = behind.inspect(&source, &resource).await.unwrap();
    assert_eq!(owner(&detail.lock.unwrap()), "w-3");
    ensemble.replace_holder(Some(held), "w-4").await;
    let current = unlocker(&ensemble.leader.cluster());
    let reviewed = generation(&current, &source, &resource).await;
    let released = behind.release(&source, &resource, &reviewed, &act()).await;
    assert_eq!(released.unwrap(), Release::Released);
    assert!(scan(&current).await.unwrap().names().is_empty());
}
