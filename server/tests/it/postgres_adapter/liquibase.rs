//! Liquibase itself: its lock while a migration hangs, and two runs after a forced unlock.

use ::backends::Backend;
use ::config::postgres::LeaseTablePreset;
use domain::force_release::Release;
use domain::observation::Lifetime;
use testkit::eventually;

use super::release::unlocker;
use super::watched_postgres::*;
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;

const SOURCE: &str = "table:public.databasechangeloglock";

#[tokio::test]
async fn the_end_of_an_evicted_liquibase_frees_the_next_run() {
    // Two runs of one change set, which hang at a lock each. The review warns of what is then seen.
    let server = server().await;
    let port = server.port().to_string();
    let [mut gate_1, mut gate_2] = [
        user(&server.superuser_url()).await,
        user(&server.superuser_url()).await,
    ];
    run(&mut gate_1, "SELECT pg_advisory_lock(1)").await;
    run(&mut gate_2, "SELECT pg_advisory_lock(2)").await;
    let is_hanging = async |key: &str| {
        let mut observer = user(&server.superuser_url()).await;
        let sql = format!(
            "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = {key}"
        );
        sqlx::query_scalar::<_, i64>(sqlx::AssertSqlSafe(sql))
            .fetch_one(&mut observer)
            .await
            .unwrap()
            == 1
    };
    let mut first = LockClient::start("liquibase.sh", &[&port, "1"]);
    eventually("the first run hangs", async || is_hanging("1").await).await;
    let mut second = LockClient::start("liquibase.sh", &[&port, "2"]);
    while !second.line().await.contains("Waiting for changelog lock") {}

    let table = lease_table("public.databasechangeloglock", LeaseTablePreset::Liquibase, &[]);
    let backend = unlocker(&server.superuser_url(), vec![table]);
    let (source, resource) = id(SOURCE, "1");
    let seen = backend.inspect(&source, &resource).await.unwrap();
    let lock = seen.lock.unwrap();
    assert!(
        matches!(&lock.lifetime, Lifetime::NoTtl { why } if why.contains("Liquibase")),
        "{lock:?}"
    );
    let owner = lock.owner.known().unwrap().as_str();
    assert!(
        owner.contains('(') && owner.ends_with(')'),
        "host (address): {owner}"
    );
    assert!(lock.acquired_at.why().unwrap().contains("time zone"), "{lock:?}");
    let warnings = seen.blast_radius.known().unwrap().warnings.join(" ");
    assert!(
        warnings.contains("releases the lock of the next run"),
        "{warnings}"
    );

    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
    eventually("the second run hangs too", async || is_hanging("2").await).await;
    assert!(backend.inspect(&source, &resource).await.unwrap().lock.is_some());
    run(&mut gate_1, "SELECT pg_advisory_unlock(1)").await;
    while !first.line().await.contains("executed successfully") {}
    assert!(is_hanging("2").await);
    assert_eq!(backend.inspect(&source, &resource).await.unwrap().lock, None);
}
