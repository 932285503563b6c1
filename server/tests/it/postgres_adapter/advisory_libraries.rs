//! Advisory locks of libraries: named, waited for, and unlocked by force, with the libraries themselves.

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use domain::force_release::Release;
use domain::names::{Resource, Source};
use domain::reported::Reported;
use testkit::{Postgres, eventually};

use super::watched_postgres::*;
use crate::support::lock_client::LockClient;
use crate::support::unlocking::unlock;

fn unlocker(server: &Postgres, names: &[&str]) -> PostgresBackend {
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    config.unlock_url = Some(server.superuser_url().as_str().into());
    config.names = names.iter().map(|name| (*name).to_owned()).collect();
    backend_of(&config)
}

/// The only advisory lock once it is called `name` and has `waiters`.
async fn known(backend: &PostgresBackend, name: &str, waiters: u32) -> (Source, Resource) {
    let mut found = None;
    eventually(name, async || {
        let observed = observe(backend).await;
        let lock = observed
            .locks
            .values()
            .find(|lock| lock.source.as_str() == "advisory");
        let Some(lock) = lock.filter(|lock| lock.waiter_count == Reported::Value(waiters)) else {
            return false;
        };
        let seen = backend.inspect(&lock.source, &lock.resource).await.unwrap();
        let is_named = |value: &str| {
            seen.raw
                .iter()
                .any(|field| field.name == "known as" && field.value == value)
        };
        let is_known = is_named(name);
        found = Some((lock.source.clone(), lock.resource.clone()));
        is_known
    })
    .await;
    found.unwrap()
}

#[tokio::test]
async fn locks_of_python_libraries_are_named_and_their_waiters_go_on() {
    // The waiter holds at once, from Postgres; the evicted program has lost its session.
    for (library, name) in [
        ("django_pglock", "nightly"),
        ("pals", "billing.nightly"),
        ("sqlalchemy_dlock", "nightly"),
        ("pgqueuer", "pgqueuer"),
    ] {
        let server = server().await;
        let args = [library, &server.superuser_url(), name];
        let mut first = LockClient::start("advisory_lock.py", &args);
        assert_eq!(first.until("held").await, "", "{library}");
        let mut second = LockClient::start("advisory_lock.py", &args);
        assert_eq!(second.line().await, "waiting");
        let backend = unlocker(&server, &["other", name]);
        let (source, resource) = known(&backend, name, 1).await;
        assert_eq!(
            unlock(&backend, &source, &resource).await,
            Release::Released,
            "{library}"
        );
        assert_eq!(second.line().await, "held");
        first.send("").await;
        assert_eq!(first.line().await, "disconnected", "{library}");
    }
}

#[tokio::test]
async fn locks_of_migrations_in_node_are_named_without_configuration() {
    // A second run fails at once, polls, or waits in Postgres. The evicted run has lost its session.
    for (library, name, waiters) in [
        ("node-pg-migrate", "node-pg-migrate migrations", 0),
        ("postgres-migrations", "postgres-migrations", 0),
        ("kysely", "Kysely migrations", 1),
    ] {
        let server = server().await;
        let args = [library, &server.superuser_url()];
        let mut first = LockClient::start("migration.mjs", &args);
        let backend = unlocker(&server, &[]);
        known(&backend, name, 0).await;
        let mut second = LockClient::start("migration.mjs", &args);
        if library == "node-pg-migrate" {
            let error = second.line().await;
            assert!(
                error.starts_with("Another migration is already running"),
                "{error}"
            );
        }
        let (source, resource) = known(&backend, name, waiters).await;
        assert_eq!(
            unlock(&backend, &source, &resource).await,
            Release::Released,
            "{library}"
        );
        first.ended().await;
        if library != "node-pg-migrate" {
            known(&backend, name, 0).await;
        }
    }
}
