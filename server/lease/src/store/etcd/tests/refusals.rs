//! What start refuses, each with its reason and remedy.

use ::config::lease_store::Password;
use secrecy::SecretString;
use testkit::eventually;

use super::*;
use crate::error::LeaseOpenError;

/// The refusal: its reason and its remedy.
async fn refused(config: &LeaseStoreConfig) -> (String, String) {
    match EtcdStore::open(config, Clock::start()).await {
        Err(LeaseOpenError::Etcd { reason, remedy, .. }) => (reason, remedy),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("opened"),
    }
}

fn address(etcd: &EtcdCluster, member: usize) -> String {
    format!("127.0.0.1:{}", etcd.members[member].port())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_part_of_the_members_is_refused() {
    let etcd = cluster(3, &[]).await;
    let (reason, remedy) = refused(&config(&address(&etcd, 0))).await;
    assert!(
        reason.contains("3 members with a vote, and lease.store names 1"),
        "{reason}"
    );
    for endpoint in etcd.endpoints() {
        assert!(remedy.contains(&endpoint), "{remedy}");
    }
    let two_members = format!("{},{}", address(&etcd, 0), address(&etcd, 1));
    assert!(refused(&config(&two_members)).await.0.contains("names 2"));
    let port = etcd.members[0].port();
    let repeated = format!("127.0.0.1:{port},localhost:{port},{}", address(&etcd, 1));
    let (reason, _) = refused(&config(&repeated)).await;
    assert!(reason.contains("same member"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_two_clusters_are_refused() {
    let (one, other) = (cluster(1, &[]).await, cluster(1, &[]).await);
    let mixed = format!("{},{}", address(&one, 0), address(&other, 0));
    let (reason, remedy) = refused(&config(&mixed)).await;
    assert!(reason.contains("different clusters"), "{reason}");
    assert!(remedy.contains("member list"), "{remedy}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_does_not_answer_is_refused() {
    let etcd = cluster(1, &[]).await;
    etcd.members[0].stop().await.unwrap();
    let (reason, remedy) = refused(&config(&address(&etcd, 0))).await;
    assert!(reason.contains("none of its members answers"), "{reason}");
    assert!(remedy.contains("lease.store"), "{remedy}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_without_majority_is_refused_as_leaderless() {
    let etcd = cluster(3, &[]).await;
    let all = [0, 1, 2].map(|index| address(&etcd, index)).join(",");
    for index in [1, 2] {
        etcd.members[index].stop().await.unwrap();
    }
    // The last member notices it with its next election.
    eventually("the last member has no leader", || async {
        let (reason, remedy) = refused(&config(&all)).await;
        reason.contains("etcd has no leader") && remedy.contains("a majority of etcd's members")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn foreign_keys_and_other_installations_are_refused() {
    let etcd = cluster(1, &[]).await;
    let ours = |installation: &str| LeaseStoreConfig {
        installation: Some(installation.to_owned()),
        ..config(&address(&etcd, 0))
    };
    etcd.ctl(&[0], &["put", "/leasehold/locks/a", "v"]).await.unwrap();
    let (reason, remedy) = refused(&ours("one")).await;
    assert!(reason.contains("/leasehold/locks/a"), "{reason}");
    assert!(remedy.contains("another prefix"), "{remedy}");
    etcd.ctl(&[0], &["del", "/leasehold/locks/a"]).await.unwrap();
    // Outside of the prefix there may be any key.
    etcd.ctl(&[0], &["put", "/leasehold-locks/a", "v"]).await.unwrap();
    let store = EtcdStore::open(&ours("one"), Clock::start()).await.unwrap();
    store.close().await;
    let (reason, remedy) = refused(&ours("two")).await;
    assert!(
        reason.contains("another installation") && reason.contains("one"),
        "{reason}"
    );
    assert!(remedy.contains("prefix"), "{remedy}");
    let store = EtcdStore::open(&ours("one"), Clock::start()).await.unwrap();
    store.close().await;
    let identity = r#"{"layout":9,"store_id":"s","epoch":1,"token_floor":0,"cluster_id":"1"}"#;
    etcd.ctl(&[0], &["put", "/leasehold/meta/identity", identity])
        .await
        .unwrap();
    let (reason, _) = refused(&ours("one")).await;
    assert!(reason.contains("layout 9"), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_without_rights_is_refused() {
    let etcd = cluster(1, &[]).await;
    for args in [
        &["user", "add", "root:secret"][..],
        &["user", "grant-role", "root", "root"],
        &["user", "add", "leases:word"],
        &["role", "add", "leasehold-lease"],
        &["auth", "enable"],
    ] {
        if args[1] == "grant-role" {
            // etcd 3.4 has the role only once it was added.
            let _ = etcd.ctl(&[0], &["role", "add", "root"]).await;
        }
        etcd.ctl(&[0], args).await.unwrap();
    }
    let (reason, remedy) = refused(&config(&address(&etcd, 0))).await;
    assert!(reason.contains("requires an account"), "{reason}");
    assert!(remedy.contains("lease.user"), "{remedy}");
    let account = |password: &str| LeaseStoreConfig {
        user: Some("leases".to_owned()),
        password: Some(Password(SecretString::from(password))),
        ..config(&address(&etcd, 0))
    };
    let (reason, _) = refused(&account("wrong")).await;
    assert!(reason.contains("password is wrong"), "{reason}");
    let (reason, remedy) = refused(&account("word")).await;
    assert!(reason.contains("may not read and write"), "{reason}");
    assert!(remedy.contains("--prefix=true readwrite /leasehold/"), "{remedy}");
    // What the remedy says is enough.
    let root = ["--user=root:secret"];
    let grant = [
        root[0],
        "role",
        "grant-permission",
        "leasehold-lease",
        "--prefix=true",
        "readwrite",
        "/leasehold/",
    ];
    etcd.ctl(&[0], &grant).await.unwrap();
    etcd.ctl(
        &[0],
        &[root[0], "user", "grant-role", "leases", "leasehold-lease"],
    )
    .await
    .unwrap();
    let store = EtcdStore::open(&account("word"), Clock::start()).await.unwrap();
    granted(&store, "r").await;
    store.send_heartbeat().await.unwrap();
    store.run_maintenance(&RETENTION).await.unwrap();
    store.close().await;
}
