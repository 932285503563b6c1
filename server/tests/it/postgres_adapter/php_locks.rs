//! Locks of PHP's frameworks in Postgres: the real Symfony and Laravel, evicted and waiting.

use ::backends::Backend;
use ::config::postgres::LeaseTablePreset;
use domain::force_release::Release;
use domain::names::{Resource, Source};
use domain::observation::{Lifetime, ObservedLock};
use testkit::{Postgres, eventually};

use super::release::unlocker;
use super::watched_postgres::*;
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;

fn start(script: &str, kind: &str, server: &Postgres, name: &str) -> LockClient {
    let seconds = ["600"];
    let args = [kind, &server.port().to_string(), name];
    let args = match script {
        "laravel_lock.php" => [&args[..], &seconds].concat(),
        _ => args.to_vec(),
    };
    LockClient::start(script, &args)
}

async fn holder(script: &str, kind: &str, server: &Postgres, name: &str) -> (LockClient, String) {
    let mut client = start(script, kind, server, name);
    assert_eq!(client.line().await, "waiting");
    let owner = client.until("held").await;
    (client, owner)
}

/// The only row, granted for ten minutes, with its owner as its lease id.
async fn only_row(backend: &dyn Backend, source: &Source, resource: &Resource) -> ObservedLock {
    let lock = backend.inspect(source, resource).await.unwrap().lock.unwrap();
    assert!(
        matches!(
            lock.lifetime,
            Lifetime::Leased {
                remaining_ms: 500_000..=601_000,
                ..
            }
        ),
        "{lock:?}"
    );
    let owner = lock.owner.known().unwrap().as_str();
    assert_eq!(lock.lease_id.known().map(AsRef::as_ref), Some(owner));
    lock
}

#[tokio::test]
async fn an_evicted_lock_of_symfony_cannot_be_refreshed() {
    // Through PDO and through Doctrine; the row has the sha256 of "invoices". The waiter polls and holds.
    for kind in ["PdoStore", "DoctrineDbalStore"] {
        let server = server().await;
        let (mut first, _) = holder("symfony_lock.php", kind, &server, "invoices").await;
        let mut second = start("symfony_lock.php", kind, &server, "invoices");
        assert_eq!(second.line().await, "waiting");
        let table = lease_table("public.lock_keys", LeaseTablePreset::Symfony, &[]);
        let backend = unlocker(&server.superuser_url(), vec![table]);
        let (source, resource) = id(
            "table:public.lock_keys",
            "491dabd42b00f84e105e30ac6ecb880ab590601ff36cc6d35c01b704dc61b88d",
        );
        let lock = only_row(&backend, &source, &resource).await;
        assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
        assert_eq!(second.line().await, "held");
        for (command, answer) in [("refresh", "LockConflictedException"), ("release", "done")] {
            first.send(command).await;
            assert_eq!(first.line().await, answer, "{kind}: {command}");
        }
        second.send("acquired").await;
        assert_eq!(
            second.line().await,
            "true",
            "the release of the first deletes nothing"
        );
        let now = only_row(&backend, &source, &resource).await;
        assert_ne!(now.owner, lock.owner);
    }
}

#[tokio::test]
async fn an_evicted_cache_lock_of_laravel_releases_nothing() {
    // `block()` polls: the waiter holds after the unlock, and the release of the first leaves its row alone.
    let server = server().await;
    let (mut first, owner) = holder("laravel_lock.php", "database", &server, "report").await;
    let mut second = start("laravel_lock.php", "database", &server, "report");
    assert_eq!(second.line().await, "waiting");
    let table = lease_table("public.cache_locks", LeaseTablePreset::Laravel, &[]);
    let backend = unlocker(&server.superuser_url(), vec![table]);
    let (source, resource) = id("table:public.cache_locks", "app_cache_report");
    let lock = only_row(&backend, &source, &resource).await;
    assert_eq!(lock.owner.known().unwrap().as_str(), owner);
    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
    let next = second.until("held").await;
    first.send("release").await;
    assert_eq!(first.line().await, "false");
    let lock = only_row(&backend, &source, &resource).await;
    assert_eq!(lock.owner.known().unwrap().as_str(), next);
}

#[tokio::test]
async fn an_advisory_lock_of_symfony_is_named_and_its_session_ends() {
    // crc32 of the resource. The waiter blocks in Postgres and holds at once; the evicted program has lost its connection.
    let server = server().await;
    let (mut first, _) = holder("symfony_lock.php", "PostgreSqlStore", &server, "invoices").await;
    let mut second = start("symfony_lock.php", "PostgreSqlStore", &server, "invoices");
    assert_eq!(second.line().await, "waiting");
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    config.unlock_url = Some(server.superuser_url().as_str().into());
    config.names = vec!["invoices".to_owned()];
    let backend = backend_of(&config);
    let (source, resource) = id("advisory", "advisory:postgres:1781477269");
    eventually("the waiter and the name are known", async || {
        let seen = backend.inspect(&source, &resource).await.unwrap();
        let is_named = seen
            .raw
            .iter()
            .any(|field| field.name == "known as" && field.value == "invoices");
        is_named && seen.waiters.len() == 1
    })
    .await;
    assert_eq!(unlock(&backend, &source, &resource).await, Release::Released);
    assert_eq!(second.line().await, "held");
    first.send("release").await;
    assert_eq!(first.line().await, "LockReleasingException");
}
