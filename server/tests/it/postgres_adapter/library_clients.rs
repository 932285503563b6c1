//! Libraries of npm that lock in Postgres, with the presets and names for them.

use ::backends::Backend;
use ::config::postgres::LeaseTablePreset;
use domain::force_release::Release;
use domain::observation::Lifetime;
use testkit::eventually;

use super::release::unlocker;
use super::watched_postgres::*;
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;

#[tokio::test]
async fn a_job_of_graphile_worker_is_unlocked_for_the_next_worker() {
    // The first worker's job never ends. After the unlock the second worker runs it, without waiting four hours.
    let server = server().await;
    let url = server.superuser_url();
    let mut first = LockClient::start("graphile_worker.mjs", &[&url]);
    assert_eq!(first.line().await, "ready");
    first.send("add").await;
    assert_eq!(first.line().await, "started");
    let table = lease_table(
        "graphile_worker._private_jobs",
        LeaseTablePreset::GraphileWorker,
        &[],
    );
    let backend = unlocker(&url, vec![table]);
    let (source, resource) = id("table:graphile_worker._private_jobs", "1");
    let detail = backend.inspect(&source, &resource).await.unwrap();
    let lock = detail.lock.unwrap();
    let owner = lock.owner.known().unwrap().clone();
    assert!(owner.as_str().starts_with("worker-"), "{owner:?}");
    assert!(
        matches!(
            lock.lifetime,
            Lifetime::Heartbeat {
                stale_after_ms: 14_400_000,
                ..
            }
        ),
        "{lock:?}"
    );
    let mut second = LockClient::start("graphile_worker.mjs", &[&url]);
    assert_eq!(second.line().await, "ready");
    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
    assert_eq!(second.line().await, "started");
    let lock = backend.inspect(&source, &resource).await.unwrap().lock.unwrap();
    assert_ne!(lock.owner.known(), Some(&owner));
}

#[tokio::test]
async fn the_migration_lock_of_knex_names_its_own_unlock() {
    // Its row identifies no acquisition: no forced unlock here. The library's own command frees it.
    let server = server().await;
    let url = server.superuser_url();
    let mut migration = LockClient::start("knex_migration.mjs", &[&url, "run"]);
    assert_eq!(migration.line().await, "migrating");
    let table = lease_table("knex_migrations_lock", LeaseTablePreset::Knex, &[]);
    let backend = unlocker(&url, vec![table]);
    let observed = observe(&backend).await;
    let lock = observed.lock("table:public.knex_migrations_lock", "1");
    assert!(
        matches!(&lock.lifetime, Lifetime::NoTtl { why } if why.starts_with("Knex records no expiry")),
        "{lock:?}"
    );
    let why = lock.generation.why().unwrap();
    assert!(
        why.contains("identifies the acquisition") && why.contains("knex migrate:unlock"),
        "{why}"
    );
    let mut command = LockClient::start("knex_migration.mjs", &[&url, "unlock"]);
    assert_eq!(command.line().await, "unlocked");
    let observed = observe(&backend).await;
    assert!(observed.names_in("table:public.knex_migrations_lock").is_empty());
}

#[tokio::test]
async fn a_lock_of_advisory_lock_is_named() {
    // Two integers of a hash: the configured text is found.
    let server = server().await;
    let mut client = LockClient::start("advisory_lock.mjs", &[&server.superuser_url(), "nightly"]);
    assert_eq!(client.line().await, "held");
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    config.names = vec!["nightly".to_owned()];
    let backend = backend_of(&config);
    let (source, resource) = id("advisory", "advisory:postgres:-1251853526:379575101");
    eventually("the name is found", async || {
        let raw = backend.inspect(&source, &resource).await.unwrap().raw;
        raw.iter()
            .any(|field| field.name == "known as" && field.value == "nightly")
    })
    .await;
}
