//! Each state that the filter offers is provoked for real. A state without a way to reach it fails the test.

use std::time::Duration;

use domain::names::LockId;
use domain::state::LockState;
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};
use tokio::task::JoinHandle;

use super::long_held::rule;
use super::state_agreement::{detail, lock, shows};
use super::systems::{Systems, execute, session};

/// Resources that must live while the states are checked.
#[derive(Default)]
struct Held {
    sessions: Vec<PgConnection>,
    waiting: Vec<JoinHandle<()>>,
}

/// The states that the server itself lists in its error for an unknown state.
async fn offered(systems: &Systems) -> Vec<LockState> {
    let problem = systems.console.json("/v1/inventory?state=none-such").await;
    let text = problem.to_string();
    let (_, words) = text.split_once("must be one of ").unwrap();
    let (words, _) = words.split_once(", not ").unwrap();
    let parsed = words.split(", ").map(|word| LockState::parse(word).unwrap());
    parsed.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_offered_state_is_reached_and_shown_everywhere() {
    let systems = Systems::start().await;
    let mut held = Held::default();
    let mut states = offered(&systems).await;
    assert_eq!(states, LockState::ALL);
    // Last, because the backend has to be stopped for it.
    states.sort_by_key(|state| *state == LockState::Stale);
    for state in states {
        let lock = reach(&systems, &mut held, state).await;
        shows(&systems.console, state, &lock).await;
    }
    held.waiting.iter().for_each(JoinHandle::abort);
}

async fn reach(systems: &Systems, held: &mut Held, state: LockState) -> LockId {
    match state {
        LockState::DualOwner => {
            let first = systems.acquire("stale-writer", "worker-3", 600).await;
            systems.release(&first).await;
            systems.acquire("stale-writer", "worker-9", 600).await;
            assert!(
                !systems
                    .write("stale-writer", "worker-3", &first["fencingToken"])
                    .await
            );
            lock("builtin", "lease", "stale-writer")
        }
        LockState::Split => {
            systems.redlock("lock:split", ["one", "two", ""]).await;
            lock("quorum", "redlock", "lock:split")
        }
        LockState::QuorumLost => {
            let lost = lock("quorum", "redlock", "lock:lost");
            systems.redlock("lock:lost", ["one", "one", "one"]).await;
            let page = |page: &serde_json::Value| page["locks"][0]["state"] == "healthy";
            systems.console.inventory_where("q=lock:lost", page).await;
            systems.redlock("lock:lost", ["", "one", ""]).await;
            lost
        }
        LockState::Expired => {
            systems.row("left-behind", "worker-1", 7, "-1 minute").await;
            lock("orders", "table:public.locks", "left-behind")
        }
        LockState::Orphaned => {
            let sql = "BEGIN; SELECT pg_advisory_xact_lock(7); PREPARE TRANSACTION 'payment 17'";
            execute(&systems.postgres, sql).await;
            lock("orders", "advisory", "advisory:postgres:7")
        }
        LockState::NotRenewing => not_renewing(systems).await,
        LockState::NearExpiry => near_expiry(systems).await,
        LockState::NoTtl => {
            systems.redis(&["SET", "lock:immortal", "worker-1"]).await;
            lock("cache", "key", "lock:immortal")
        }
        LockState::LongHeld => {
            systems.acquire("slow/report", "worker-1", 600).await;
            let on = json!({"id": "long_held", "prefix": "slow/", "with": {"longer_than": "1s"}});
            rule(&systems.console, on).await;
            lock("builtin", "lease", "slow/report")
        }
        LockState::Contended => contended(systems, held).await,
        LockState::Stale => {
            systems.etcd_put("/locks/unseen", "worker-1", 600).await;
            let page = |page: &serde_json::Value| page["total"].as_u64() > Some(0);
            systems.console.inventory_where("q=/locks/unseen", page).await;
            systems.etcd.kill().await.unwrap();
            lock("coord", "key", "/locks/unseen")
        }
        LockState::Unknown => {
            systems.redis(&["RPUSH", "lock:list", "no lock"]).await;
            lock("cache", "key", "lock:list")
        }
        LockState::Healthy => {
            systems.etcd_put("/locks/well", "worker-1", 600).await;
            lock("coord", "key", "/locks/well")
        }
    }
}

/// A rhythm that the console has learnt, then silence.
async fn not_renewing(systems: &Systems) -> LockId {
    let id = lock("builtin", "lease", "silent");
    let lease = systems.acquire("silent", "worker-1", 600).await;
    let path = format!("/v1/locks/{}/renew", lease["leaseId"].as_str().unwrap());
    for _ in 0..60 {
        // The rhythm that the console learns.
        tokio::time::sleep(Duration::from_millis(400)).await;
        systems.post(&path, &json!({})).await;
        if detail(&systems.console, &id).await["renewal"].is_object() {
            return id;
        }
    }
    panic!("no renewal interval is known");
}

/// Never renewed; the time left falls below an eighth of the TTL.
async fn near_expiry(systems: &Systems) -> LockId {
    let id = lock("cache", "key", "lock:ending");
    systems
        .redis(&["SET", "lock:ending", "worker-1", "PX", "240000"])
        .await;
    let page = |page: &serde_json::Value| page["total"] == 1;
    systems.console.inventory_where("q=lock:ending", page).await;
    systems.redis(&["PEXPIRE", "lock:ending", "29000"]).await;
    id
}

/// One session holds an advisory key, another one waits for it.
#[expect(
    clippy::disallowed_methods,
    reason = "a test's own session; its panic is the test's"
)]
async fn contended(systems: &Systems, held: &mut Held) -> LockId {
    let mut holder = session(&systems.postgres).await;
    let sql = "SELECT pg_advisory_lock(42)";
    holder.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    held.sessions.push(holder);
    let url = systems.postgres.superuser_url();
    held.waiting.push(tokio::spawn(async move {
        let mut waiter = PgConnection::connect(&url).await.unwrap();
        let _ = waiter.execute(AssertSqlSafe(sql.to_owned())).await;
    }));
    lock("orders", "advisory", "advisory:postgres:42")
}
