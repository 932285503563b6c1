//! The etcd of `lease.store`, and `leasehold migrate`, which creates the store in it.

use ::testkit::{EtcdCluster, EtcdOptions, Throwaway};

use super::command::{ConfigFolder, output};

async fn etcd() -> EtcdCluster {
    let options = EtcdOptions {
        fast: true,
        ..Default::default()
    };
    Throwaway::etcd_cluster(3, options).await.unwrap()
}

fn config_for(addresses: &str) -> ConfigFolder {
    ConfigFolder::new(&format!("[lease]\nstore = \"etcd://{addresses}/leasehold/\""))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_for_leases_is_examined_and_created() {
    let etcd = etcd().await;
    let config = config_for(&etcd.addresses());
    let found = async || {
        let report = config.doctor().await;
        assert_eq!(report.code, 0, "{report:#?}");
        report.level("ok").join("\n") + &report.level("warning").join("\n")
    };
    let fresh = found().await;
    assert!(fresh.contains("lease.store: reached: etcd 3."), "{fresh}");
    assert!(
        fresh.contains("3 members") && fresh.contains("there is no store yet"),
        "{fresh}"
    );
    for (args, answer) in [
        (&["migrate", "--json"][..], "{\"migrated\":true}\n"),
        (
            &["migrate", "--raise-epoch", "--json"],
            "{\"epoch\":2,\"migrated\":true}\n",
        ),
    ] {
        let mut migrate = config.leasehold();
        migrate.args(args);
        let (code, out, err) = output(migrate).await;
        assert_eq!((code, out.as_str()), (0, answer), "{err}");
    }
    let created = found().await;
    assert!(
        created.contains("it is the cluster that wrote the store"),
        "{created}"
    );
    etcd.members[1].stop().await.unwrap();
    let without = found().await;
    let address = format!("127.0.0.1:{} does not answer", etcd.members[1].port());
    assert!(without.contains(&address), "{without}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_etcd_that_cannot_hold_leases_is_one_fault() {
    let etcd = etcd().await;
    let one = config_for(&format!("127.0.0.1:{}", etcd.members[0].port()));
    let part = [
        "lease.store",
        "3 members with a vote",
        "Name the client addresses of all members",
    ];
    one.doctor().await.has_one_fault(&part);
    etcd.ctl(&[0], &["put", "/leasehold/locks/a", "v"]).await.unwrap();
    let foreign = [
        "/leasehold/locks/a was not written by the lease service",
        "another prefix",
    ];
    config_for(&etcd.addresses())
        .doctor()
        .await
        .has_one_fault(&foreign);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_that_were_moved_are_one_fault_without_their_store() {
    let etcd = etcd().await;
    let config_folder = config_for(&etcd.addresses());
    let config = config_folder.path().join("leasehold.toml");
    let with_etcd = std::fs::read_to_string(&config).unwrap();
    let set = |text: &str| std::fs::write(&config, text).unwrap();
    set("listen = \"127.0.0.1:0\"\n");
    let mut create = config_folder.leasehold();
    create.arg("migrate");
    assert_eq!(output(create).await.0, 0);
    set(&with_etcd);
    let mut moving = config_folder.leasehold();
    moving.args(["migrate", "--to", "etcd"]);
    let (code, _, err) = output(moving).await;
    assert_eq!(code, 0, "{err}");
    let found = config_folder.doctor().await.level("ok").join("\n");
    assert!(
        found.contains("store: its leases were moved to etcd://"),
        "{found}"
    );
    set("listen = \"127.0.0.1:0\"\n");
    let words = ["moved to etcd://", "set lease.store to etcd://"];
    config_folder.doctor().await.has_one_fault(&words);
}
