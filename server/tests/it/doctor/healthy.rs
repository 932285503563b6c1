//! A healthy installation.

use ::testkit::{ConsulOptions, EtcdOptions, PostgresOptions, RedisOptions, Throwaway, ZookeeperOptions};
use sqlx::{Connection as _, PgConnection};

use super::command::{ConfigFolder, output};

#[tokio::test]
async fn a_healthy_installation_has_no_finding_and_no_write() {
    // One backend of each kind and a store that a server made; the doctor runs twice: no file is added, removed or
    // grown.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let etcd = Throwaway::etcd(EtcdOptions::default()).await.unwrap();
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    })
    .await
    .unwrap();
    let zookeeper = Throwaway::zookeeper(ZookeeperOptions::default()).await.unwrap();
    let consul = Throwaway::consul(ConsulOptions::default()).await.unwrap();
    let mut admin = PgConnection::connect(&postgres.superuser_url()).await.unwrap();
    let account = "CREATE ROLE watch LOGIN; GRANT pg_read_all_stats TO watch;";
    sqlx::raw_sql(account).execute(&mut admin).await.unwrap();
    let config = ConfigFolder::new(&format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\n\
         [[backend]]\nname = \"coord\"\nkind = \"etcd\"\nendpoints = [\"{}\"]\n\
         [[backend]]\nname = \"zk\"\nkind = \"zookeeper\"\nconnect = \"{}\"\npaths = [\"/zookeeper\"]\n\
         [[backend]]\nname = \"dc1\"\nkind = \"consul\"\nurl = \"{}\"\n\
         [[backend]]\nname = \"orders\"\nkind = \"postgres\"\nurl = \"{}\"\n",
        redis.url(),
        etcd.endpoint(),
        zookeeper.cluster(),
        consul.url(),
        postgres.url("watch", "postgres")
    ));
    let mut migrate = config.leasehold();
    migrate.arg("migrate");
    assert_eq!(output(migrate).await.0, 0);
    let before = config.files();
    let report = config.doctor().await;
    assert_eq!(
        (report.code, report.level("fault")),
        (0, Vec::new()),
        "{report:#?}"
    );
    let fine = report.level("ok").join("\n");
    for part in [
        "configuration: no errors",
        "disk: ",
        "at migration",
        "commits are durable",
        "backend cache: reached at",
        "backend coord: reached at",
        "backend zk: may read the nodes below /zookeeper",
        "backend dc1: reached at",
        "backend orders: may see the sessions of others",
        "backend orders: its clock is",
    ] {
        assert!(fine.contains(part), "{part}: {fine}");
    }
    let _again = config.doctor().await;
    assert_eq!(config.files(), before);
    let mut text = config.leasehold();
    text.arg("doctor");
    let (code, out, _) = output(text).await;
    assert_eq!(code, 0);
    assert!(
        !out.contains("FAULT") && out.contains("ok       backend coord "),
        "{out}"
    );
}

#[tokio::test]
async fn all_config_errors_are_reported_with_remedies() {
    // Two errors of the configuration; no other check runs, and the exit code is that of an invalid configuration.
    let config = ConfigFolder::new("listn = 1\n[history]\nretention = \"1s\"\n");
    let report = config.doctor().await;
    assert_eq!((report.code, report.level("fault").len()), (2, 2), "{report:#?}");
    assert!(
        report.level("fault")[0].contains("leasehold.toml:2"),
        "{report:#?}"
    );
    assert!(report.errors.contains("2 faults"), "{report:#?}");
}
