//! Faults of the members of an etcd cluster.

use std::time::Duration;

use tokio::time::sleep;

use super::cluster::Cluster;
use crate::support::rng::Dice;
use testkit::EtcdCluster;

/// Longer than an election.
const DOWN: Duration = Duration::from_millis(3_000);

fn etcd(fleet_cluster: &Cluster) -> &EtcdCluster {
    fleet_cluster.etcd.as_ref().unwrap()
}

pub(super) async fn kill_leader(cluster: &Cluster) -> String {
    let leader = etcd(cluster).leader().await.unwrap();
    etcd(cluster).members[leader].kill().await.unwrap();
    sleep(DOWN).await;
    let next = etcd(cluster).leader().await.unwrap();
    assert_ne!(leader, next);
    etcd(cluster).members[leader].restart().await.unwrap();
    format!("member {leader} killed while it led, then {next} led")
}

pub(super) async fn pause(cluster: &Cluster, dice: &mut Dice) -> String {
    let place = dice.below(etcd(cluster).members.len());
    etcd(cluster).members[place].pause().await.unwrap();
    sleep(DOWN).await;
    etcd(cluster).members[place].resume().await.unwrap();
    format!("member {place} stopped for {DOWN:?}")
}

pub(super) async fn kill_majority(cluster: &Cluster) -> String {
    let members = &etcd(cluster).members;
    for member in &members[..2] {
        member.kill().await.unwrap();
    }
    sleep(DOWN).await;
    let (first, second) = tokio::join!(members[0].restart(), members[1].restart());
    first.unwrap();
    second.unwrap();
    "members 0 and 1 killed".to_owned()
}

pub(super) async fn cut_off_leader(cluster: &Cluster) -> String {
    let leader = etcd(cluster).leader().await.unwrap();
    let others: Vec<usize> = (0..3).filter(|member| *member != leader).collect();
    etcd(cluster)
        .links()
        .unwrap()
        .split(&[0, 1, 2].map(|member| usize::from(member == leader)));
    sleep(DOWN).await;
    let next = etcd(cluster).leader_among(&others).await.unwrap();
    etcd(cluster).links().unwrap().heal();
    format!("member {leader} cut off while it led, then {next} led")
}

pub(super) async fn cut_off_all(cluster: &Cluster) -> String {
    etcd(cluster).links().unwrap().split(&[0, 1, 2]);
    sleep(DOWN).await;
    assert!(etcd(cluster).ctl(&[0], &["get", "/none"]).await.is_err());
    etcd(cluster).links().unwrap().heal();
    "every member cut off from the others".to_owned()
}

pub(super) async fn defragment(cluster: &Cluster) -> String {
    let revision = etcd(cluster).compact_and_defragment().await.unwrap();
    format!("compacted to revision {revision}, every member defragmented")
}
