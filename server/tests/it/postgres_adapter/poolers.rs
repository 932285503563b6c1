//! Locks that a real PgBouncer keeps after their client has gone.

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use ::testkit::{Pgbouncer, PgbouncerOptions, Postgres, Throwaway};
use domain::observation::{Inspection, ObservedCondition};
use sqlx::Connection;
use testkit::eventually;

use super::watched_postgres::*;
use crate::support::unlocking::unlock;

const LOCK: &str = "advisory:postgres:42";

struct Pooled {
    server: Postgres,
    pooler: Pgbouncer,
    backend: PostgresBackend,
}

/// A pool of one session; the backend knows its address if `is_listed`.
async fn pooled(pool_mode: &'static str, is_listed: bool) -> Pooled {
    let server = server().await;
    let options = PgbouncerOptions {
        postgres_port: server.port(),
        pool_mode,
        pool_size: 1,
    };
    let pooler = Throwaway::pgbouncer(options).await.unwrap();
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    config.unlock_url = Some(server.superuser_url().into());
    if is_listed {
        config.poolers = vec!["127.0.0.1".parse().unwrap()];
    }
    let backend = backend_of(&config);
    Pooled {
        server,
        pooler,
        backend,
    }
}

impl Pooled {
    /// A client takes a lock outside of any transaction and goes away.
    async fn leak(&self) {
        let mut client = user(&self.pooler.url("postgres")).await;
        run(&mut client, "SELECT pg_advisory_lock(42)").await;
        client.close().await.unwrap();
    }

    async fn detail(&self) -> Inspection {
        let (source, resource) = id("advisory", LOCK);
        self.backend.inspect(&source, &resource).await.unwrap()
    }
}

fn orphaned(detail: &Inspection) -> Option<&str> {
    match detail.lock.as_ref()?.condition.as_ref()? {
        ObservedCondition::Orphaned { why } => Some(why),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_lock_left_in_a_pool_is_orphaned_at_once() {
    // The client has gone; its session is idle in the pool. A direct session takes another key meanwhile.
    let pooled = pooled("transaction", true).await;
    pooled.leak().await;
    let detail = pooled.detail().await;
    let why = orphaned(&detail).unwrap();
    assert!(
        why.starts_with("Leaked through the pooler at 127.0.0.1: session ")
            && why.contains("its client is gone"),
        "{why}"
    );
    let field = detail.raw.iter().find(|field| field.name == "pooler").unwrap();
    assert_eq!(field.value, "the pooler at 127.0.0.1");
    let observed = observe(&pooled.backend).await;
    assert_eq!(
        observed.lock("advisory", LOCK).condition,
        detail.lock.unwrap().condition
    );
}

#[tokio::test]
async fn a_pooled_client_in_a_transaction_is_no_leak() {
    // The same session, while a client has it; then the client commits.
    let pooled = pooled("transaction", true).await;
    let mut client = user(&pooled.pooler.url("postgres")).await;
    run(&mut client, "BEGIN; SELECT pg_advisory_lock(42)").await;
    assert_eq!(orphaned(&pooled.detail().await), None);
    run(&mut client, "COMMIT").await;
    assert!(orphaned(&pooled.detail().await).is_some());
}

#[tokio::test]
async fn a_pooler_that_is_not_listed_is_not_accused() {
    // Its session does not differ from a direct one that holds a lock while its client computes.
    let pooled = pooled("transaction", false).await;
    pooled.leak().await;
    assert_eq!(orphaned(&pooled.detail().await), None);
}

#[tokio::test]
async fn a_pooler_in_session_mode_releases_the_lock_itself() {
    // Its reset query runs when the client goes: the advice not to list it rests on this.
    let pooled = pooled("session", false).await;
    pooled.leak().await;
    eventually("the pooler resets its session", async || {
        pooled.detail().await.lock.is_none()
    })
    .await;
}

#[tokio::test]
async fn the_unlock_of_a_leak_warns_and_frees_the_pool() {
    // The review names the pooler; the release ends the session; the pool then serves the next client.
    let pooled = pooled("transaction", true).await;
    pooled.leak().await;
    let detail = pooled.detail().await;
    let radius = detail.blast_radius.known().unwrap();
    let warns = radius
        .warnings
        .iter()
        .any(|warning| warning.contains("belongs to the pooler at 127.0.0.1"));
    assert!(warns, "{:?}", radius.warnings);
    let (source, resource) = id("advisory", LOCK);
    let release = unlock(&pooled.backend, &source, &resource).await;
    assert_eq!(release.as_str(), "released", "{release:?}");
    let mut next = user(&pooled.pooler.url("postgres")).await;
    run(&mut next, "SELECT pg_advisory_xact_lock(42)").await;
    drop(pooled.server);
}
