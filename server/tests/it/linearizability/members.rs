//! Faults of the members of an etcd cluster.

use std::time::Duration;

use tokio::time::sleep;

use super::cluster::Cluster;
use crate::support::rng::Dice;
use testkit::EtcdCluster;

/// Longer than an election.
const DOWN: Duration = Duration::from_millis(3_000);

fn etcd(world: &Cluster) -> &EtcdCluster {
    world.etcd.as_ref().unwrap()
}

pub(super) async fn kill_leader(world: &Cluster) -> String {
    let leader = etcd(world).leader().await.unwrap();
    etcd(world).members[leader].kill().await.unwrap();
    sleep(DOWN).await;
    let next = etcd(world).leader().await.unwrap();
    assert_ne!(leader, next);
    etcd(world).members[leader].restart().await.unwrap();
    format!("member {leader} killed while it led, then {next} led")
}

pub(super) async fn pause(world: &Cluster, dice: &mut Dice) -> String {
    let place = dice.below(etcd(world).members.len());
    etcd(world).members[place].pause().await.unwrap();
    sleep(DOWN).await;
    etcd(world).members[place].resume().await.unwrap();
    format!("member {place} stopped for {DOWN:?}")
}

pub(super) async fn kill_majority(world: &Cluster) -> String {
    let members = &etcd(world).members;
    for member in &members[..2] {
        member.kill().await.unwrap();
    }
    sleep(DOWN).await;
    let (first, second) = tokio::join!(members[0].restart(), members[1].restart());
    first.unwrap();
    second.unwrap();
    "members 0 and 1 killed".to_owned()
}

pub(super) async fn cut_off_leader(world: &Cluster) -> String {
    let leader = etcd(world).leader().await.unwrap();
    let others: Vec<usize> = (0..3).filter(|member| *member != leader).collect();
    etcd(world)
        .links()
        .unwrap()
        .split(&[0, 1, 2].map(|member| usize::from(member == leader)));
    sleep(DOWN).await;
    let next = etcd(world).leader_among(&others).await.unwrap();
    etcd(world).links().unwrap().heal();
    format!("member {leader} cut off while it led, then {next} led")
}

pub(super) async fn cut_off_all(world: &Cluster) -> String {
    etcd(world).links().unwrap().split(&[0, 1, 2]);
    sleep(DOWN).await;
    assert!(etcd(world).ctl(&[0], &["get", "/none"]).await.is_err());
    etcd(world).links().unwrap().heal();
    "every member cut off from the others".to_owned()
}

pub(super) async fn defragment(world: &Cluster) -> String {
    let revision = etcd(world).compact_and_defragment().await.unwrap();
    format!("compacted to revision {revision}, every member defragmented")
}
