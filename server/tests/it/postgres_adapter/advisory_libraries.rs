//! Advisory locks of libraries: named, waited for, and unlocked by force, with the libraries themselves.

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use ::config::postgres::AdvisoryNameConfig;
use domain::force_release::Release;
use domain::names::{Resource, Source};
use domain::reported::Reported;
use testkit::{Postgres, eventually};

use super::watched_postgres::*;
use crate::support::lock_client::LockClient;
use crate::support::unlocking::{act, generation, unlock};

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
    // A second run fails at once, polls, or waits in Postgres. The evicted run has lost its session. After it Prisma's second run
    // finds a migration that failed, and the others hold.
    for (library, name, waiters) in [
        ("node-pg-migrate", "node-pg-migrate migrations", 0),
        ("postgres-migrations", "postgres-migrations", 0),
        ("kysely", "Kysely migrations", 1),
        ("prisma", "Prisma Migrate", 1),
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
        match library {
            "node-pg-migrate" => {}
            "prisma" => second.ended().await,
            _ => drop(known(&backend, name, 0).await),
        }
    }
}

#[tokio::test]
async fn starts_of_pg_boss_and_dbos_go_on_one_after_the_other() {
    // Another session is creating their schema, so that the first start waits with the lock. The second one waits for it in
    // Postgres, or polls. DBOS holds its lock with a session of its own: its first start goes on.
    for (script, library, name, schema, waiters) in [
        ("migration.mjs", "pg-boss", "pg-boss schema", "pgboss", 1),
        ("dbos_migrations.py", "", "DBOS migrations", "dbos", 0),
    ] {
        let server = server().await;
        let mut creating = user(&server.superuser_url()).await;
        run(&mut creating, &format!("BEGIN; CREATE SCHEMA {schema}")).await;
        let mut config = postgres_config(&server.superuser_url(), Vec::new());
        config.unlock_url = Some(server.superuser_url().as_str().into());
        config.advisory_names = vec![AdvisoryNameConfig {
            key: Some(1_234_567_890),
            key1: None,
            key2: None,
            name: "DBOS migrations".to_owned(),
        }];
        let backend = backend_of(&config);
        let url = server.superuser_url();
        let args: Vec<&str> = [library, &url]
            .into_iter()
            .filter(|arg| !arg.is_empty())
            .collect();
        let mut first = LockClient::start(script, &args);
        known(&backend, name, 0).await;
        let _second = LockClient::start(script, &args);
        let (source, resource) = known(&backend, name, waiters).await;
        let held = generation(&backend, &source, &resource).await;
        assert_eq!(
            backend.release(&source, &resource, &held, &act()).await.unwrap(),
            Release::Released,
            "{name}"
        );
        if library == "pg-boss" {
            first.ended().await;
        }
        eventually("the second start holds", async || {
            let seen = backend.inspect(&source, &resource).await.unwrap();
            let now = seen.lock.and_then(|lock| lock.generation.known().cloned());
            now.is_some_and(|now| now != held)
        })
        .await;
    }
}
