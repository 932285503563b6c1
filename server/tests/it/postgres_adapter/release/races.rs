//! Rows released while clients acquire and release continuously, and answers that are lost.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use ::config::postgres::{LeaseTableRelease, PostgresConfig};
use domain::names::{Resource, Source};
use sqlx::{AssertSqlSafe, PgConnection};

use super::super::watched_postgres::*;
use super::{LOCKS, ROW, common_by, number, unlocker};
use crate::support::proxy::Proxy;
use crate::support::unlocking::{Users, generation, lose_answers, race};

/// Acquires the lock as the clients of a table with a counter in each row do; tokens must only rise.
struct Takers {
    session: RefCell<Option<PgConnection>>,
    count: Cell<u32>,
    token: Cell<i64>,
}

impl Takers {
    /// The users share one session, one at a time.
    async fn fetch(&self, sql: String) -> Option<i64> {
        let mut session = loop {
            let taken = self.session.borrow_mut().take();
            match taken {
                Some(session) => break session,
                None => tokio::task::yield_now().await,
            }
        };
        let answer = sqlx::query_scalar(AssertSqlSafe(sql))
            .fetch_optional(&mut session)
            .await;
        self.session.replace(Some(session));
        answer.unwrap()
    }
}

impl Users for Takers {
    type Held = String;
    // An unlock makes a session of its own.
    const HOLD_MS: u64 = 50;

    async fn take(&self) -> Option<(String, String)> {
        let owner = format!("w{}", self.count.replace(self.count.get() + 1));
        let token = self
            .fetch(format!(
                "INSERT INTO distributed_locks AS l VALUES
                 ('race', '{owner}', 'l-{owner}', 1, now() + interval '1 hour', now(), now())
                 ON CONFLICT (resource) DO UPDATE SET owner_id = EXCLUDED.owner_id, lease_id = EXCLUDED.lease_id,
                     fencing_token = l.fencing_token + 1, expires_at = EXCLUDED.expires_at, created_at = EXCLUDED.created_at
                 WHERE l.expires_at <= clock_timestamp() RETURNING fencing_token"
            ))
            .await?;
        assert!(token > self.token.replace(token), "tokens only rise");
        Some((owner.clone(), owner))
    }

    async fn give_back(&self, owner: String) -> bool {
        let sql = format!(
            "UPDATE distributed_locks SET expires_at = clock_timestamp()
             WHERE lease_id = 'l-{owner}' AND expires_at > clock_timestamp() RETURNING 1::bigint"
        );
        self.fetch(sql).await.is_some()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn racing_unlocks_never_hit_the_next_holder() {
    // Clients acquire and release continuously, with a counter in the row; every holding that was cut short is one
    // that an unlock reports, and no token decreases.
    let server = server().await;
    let url = server.superuser_url();
    let mut session = user(&url).await;
    run(&mut session, COMMON).await;
    let users = Takers {
        session: RefCell::new(Some(session)),
        count: Cell::new(0),
        token: Cell::new(0),
    };
    let backend = unlocker(&url, vec![common("distributed_locks")]);
    let (source, resource) = id(LOCKS, "race");
    race(&backend, &source, &resource, &users).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_an_unknown_outcome() {
    // The statement's answer stops in the proxy of the unlocking account; the watching one goes straight.
    let server = server().await;
    let url = server.superuser_url();
    let mut first = user(&url).await;
    run(&mut first, COMMON).await;
    let proxy = Proxy::start(server.port()).await;
    let through = url.replace(&format!(":{}/", server.port()), &format!(":{}/", proxy.port()));
    assert_ne!(through, url);
    let postgres = PostgresConfig {
        unlock_url: Some(through.as_str().into()),
        ..postgres_config(&url, vec![common_by(LeaseTableRelease::Delete)])
    };
    let mut config = backend_config(&postgres);
    config.timeout = Duration::from_millis(900);
    let backend = backends::postgres::connect(&config, &postgres, runtime::clock::Clock::start()).unwrap();
    let (source, resource): (Source, Resource) = id(LOCKS, "a");
    let session = tokio::sync::Mutex::new(first);
    let take = async || {
        run(&mut *session.lock().await, "TRUNCATE distributed_locks").await;
        run(&mut *session.lock().await, ROW).await;
        generation(&backend, &source, &resource).await
    };
    let is_held = async || {
        let held = "SELECT count(*) FROM distributed_locks WHERE resource = 'a'";
        number(&mut *session.lock().await, held).await == 1
    };
    lose_answers(&backend, &proxy, (&source, &resource), take, is_held).await;
}
