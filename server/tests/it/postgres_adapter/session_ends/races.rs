//! Sessions that are ended while others come and go, and answers that are lost.

use std::cell::Cell;
use std::time::Duration;

use ::backends::Backend as _;
use domain::force_release::Release;
use sqlx::{Connection, PgConnection};

use super::super::release::{unlocker, unlocker_through};
use super::super::watched_postgres::*;
use super::is_alive;
use crate::support::proxy::{Link, Proxy};
use crate::support::unlocking::{Users, act, generation, lose_answers, race};
use testkit::eventually;

/// Each holding is a session of its own.
struct Takers {
    url: String,
    count: Cell<u32>,
}

impl Users for Takers {
    type Held = PgConnection;
    // An unlock makes a session of its own.
    const HOLD_MS: u64 = 25;
    // `pg_terminate_backend` signals a session that may release its lock at the same moment.
    const IS_ATOMIC: bool = false;

    async fn take(&self) -> Option<(String, PgConnection)> {
        let number = self.count.replace(self.count.get() + 1);
        let mut session = named_user(&self.url, &format!("w{number}")).await;
        let owner = format!("w{number}#{}", pid(&mut session).await);
        let taken: Result<bool, _> = sqlx::query_scalar("SELECT pg_try_advisory_lock(42)")
            .fetch_one(&mut session)
            .await;
        // Only a holder is ended: a session that is cut off here had acquired the lock.
        let taken = taken.unwrap_or(true);
        taken.then_some((owner, session))
    }

    async fn give_back(&self, mut session: PgConnection) -> bool {
        let unlocked: Result<bool, _> = sqlx::query_scalar("SELECT pg_advisory_unlock(42)")
            .fetch_one(&mut session)
            .await;
        let still_mine = unlocked.unwrap_or(false);
        let _ended = session.close().await;
        still_mine
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_terminations_never_hit_the_next_holder() {
    // Sessions connect, acquire the key and disconnect continuously; every one that was cut is one that an unlock
    // reports.
    let server = server().await;
    let users = Takers {
        url: server.superuser_url(),
        count: Cell::new(0),
    };
    let backend = unlocker(&server.superuser_url(), vec![]);
    let (source, resource) = id("advisory", "advisory:postgres:42");
    race(&backend, &source, &resource, &users).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_an_unknown_outcome() {
    // The statement's answer stops in the proxy of the unlocking account; the watching one goes straight.
    let server = server().await;
    let url = server.superuser_url();
    let proxy = Proxy::start(server.port()).await;
    let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port()));
    assert_ne!(through, url);
    let postgres = config::postgres::PostgresConfig {
        unlock_url: Some(through.as_str().into()),
        ..postgres_config(&url, vec![])
    };
    let mut config = backend_config(&postgres);
    config.timeout = Duration::from_millis(900);
    let backend = backends::postgres::connect(&config, &postgres, runtime::clock::Clock::start()).unwrap();
    let (source, resource) = id("advisory", "advisory:postgres:42");
    let holder = tokio::sync::Mutex::new(None::<PgConnection>);
    let take = async || {
        let mut holder = holder.lock().await;
        let ended = match holder.as_mut() {
            Some(session) => !is_alive(session).await,
            None => true,
        };
        if ended {
            let mut session = named_user(&url, "billing").await;
            run(&mut session, "SELECT pg_advisory_lock(42)").await;
            *holder = Some(session);
        }
        generation(&backend, &source, &resource).await
    };
    let is_held = async || match holder.lock().await.as_mut() {
        Some(session) => is_alive(session).await,
        None => false,
    };
    lose_answers(&backend, &proxy, (&source, &resource), take, is_held).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocker_of_other_sessions_is_not_ended() {
    // Between review and release the observed waiter gives up, and another session begins to wait.
    let server = server().await;
    let url = server.superuser_url();
    let proxy = Proxy::start(server.port()).await;
    let mut blocker = named_user(&url, "blocker").await;
    let table = "CREATE TABLE invoices (n int); INSERT INTO invoices VALUES (1)";
    run(&mut blocker, table).await;
    run(&mut blocker, "BEGIN; UPDATE invoices SET n = n + 1").await;
    let waiting = async |session: &mut PgConnection, name: &str| {
        eventually(&format!("{name} waits"), async || {
            let select = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'";
            let query = sqlx::query_scalar(select).bind(name);
            let count: i64 = query.fetch_one(&mut *session).await.unwrap();
            count == 1
        })
        .await;
    };
    let mut admin = user(&url).await;
    let mut first = named_user(&url, "first").await;
    let first_pid = pid(&mut first).await;
    let update = "UPDATE invoices SET n = 10";
    let first = later_result(first, update);
    waiting(&mut admin, "first").await;
    let through = url.replace(&format!(":{}", server.port()), &format!(":{}", proxy.port()));
    let backend = unlocker_through(&url, &through, vec![]);
    let (source, resource) = id("relation", "relation:postgres:public.invoices");
    let observed = generation(&backend, &source, &resource).await;
    proxy.set(Link::Blackhole).await;
    let why = act();
    let swap = async {
        eventually("the account of unlocks connects", async || {
            proxy.traffic().accepted() > 0
        })
        .await;
        let cancel = sqlx::query("SELECT pg_cancel_backend($1)").bind(first_pid);
        cancel.execute(&mut admin).await.unwrap();
        assert!(first.await.unwrap().is_err());
        let second = later_result(named_user(&url, "second").await, update);
        waiting(&mut admin, "second").await;
        proxy.set(Link::Pass).await;
        (second,)
    };
    let (answer, (second,)) = futures::join!(backend.release(&source, &resource, &observed, &why), swap);
    assert!(matches!(answer, Ok(Release::Refused { .. })), "{answer:?}");
    assert!(is_alive(&mut blocker).await);
    run(&mut blocker, "COMMIT").await;
    second.await.unwrap().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a session of the test that waits")]
fn later_result(
    mut session: PgConnection,
    sql: &'static str,
) -> tokio::task::JoinHandle<Result<(), sqlx::Error>> {
    tokio::spawn(async move { sqlx::query(sql).execute(&mut session).await.map(drop) })
}
