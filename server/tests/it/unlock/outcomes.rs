//! Releases whose answer was lost: unknown, and no other result, until the lock was read again.

use crate::support::{TestCaller, TestServer};
use crate::unlock::blast_radius::{is_alive, postgres_and_server, session};
use crate::unlock::requests::state;
use std::num::NonZeroU32;

use ::testkit::{Redis, RedisOptions, Throwaway};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::support::proxy::{Link, Proxy};
use testkit::eventually;

async fn run<T: redis::FromRedisValue>(redis: &Redis, command: &[&str]) -> T {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut driver = client.get_multiplexed_async_connection().await.unwrap();
    let mut request = redis::cmd(command[0]);
    for word in &command[1..] {
        request.arg(*word);
    }
    request.query_async(&mut driver).await.unwrap()
}

/// A key, and an unlock of it whose answers stop after that many requests; returns the unlock's id if its outcome is unknown.
async fn lose_the_answer(
    (server, operator): (&TestServer, &TestCaller),
    (redis, proxy): (&Redis, &Proxy),
    name: &str,
    requests: NonZeroU32,
) -> Option<String> {
    proxy.set(Link::Pass).await;
    let () = run(redis, &["SET", name, "owner"]).await;
    let held = server.inventory_lock(operator, "cache", name).await;
    let id = server.begun(operator, &held).await;
    proxy.set(Link::SilentAfter(requests)).await;
    let reply = server.confirm(operator, &id, name).await;
    proxy.set(Link::Cut).await;
    let is_gone = run::<i64>(redis, &["EXISTS", name]).await == 0;
    match reply.1["state"].as_str() {
        Some("released") => assert!(is_gone, "released, and still held"),
        Some("outcome_unknown") => {
            assert!(reply.1["outcome"]["why"].is_string() && reply.1["endedAt"].is_null());
            return is_gone.then_some(id);
        }
        _ => assert!(!is_gone, "not done, and gone: {reply:?}"),
    }
    None
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_response_is_unknown_until_the_lock_is_read_again() {
    // Redis is scanned directly and unlocked through a proxy whose answers stop after one request more each time,
    // until a release was done and its answer lost: unknown. The next read finds it gone: released, with the evidence.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let proxy = Proxy::start(redis.port()).await;
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{}\"]\n\
         unlock_url = \"redis://127.0.0.1:{}\"\npatterns = [\"lock:*\"]\npoll_interval = \"1s\"\ntimeout = \"1s\"\n",
        redis.port(),
        proxy.port()
    );
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    let mut lost = None;
    for requests in (1..=60).filter_map(NonZeroU32::new) {
        let name = format!("lock:{requests}");
        lost = lose_the_answer((&server, &operator), (&redis, &proxy), &name, requests).await;
        if lost.is_some() {
            break;
        }
    }
    let id = lost.expect("an act was done and its answer lost");
    eventually("it is known after all", async || {
        server.unlock_state(&operator, &id).await["state"] != "outcome_unknown"
    })
    .await;
    let known = server.unlock_state(&operator, &id).await;
    assert_eq!(
        (&known["state"], &known["outcome"]["byRereading"]),
        (&json!("released"), &json!(true))
    );
    assert_eq!(
        server.unlock_phases(&id).await,
        [
            "intent pending",
            "act begun",
            "outcome outcome_unknown",
            "outcome released"
        ]
    );
    let rows = server.unlock_entries().await;
    let last = rows.iter().rfind(|row| row.unlock_id.as_deref() == Some(&id));
    assert_eq!(last.unwrap().actor_id, "system");
}

/// A server that stopped in the middle of an act left this behind.
async fn cut_off(server: &TestServer, id: &str) {
    let statement = format!(
        "UPDATE unlocks SET state = 'outcome_unknown', acted_at = expires_at, act_deadline = expires_at + 60000, \
         act_entry = intent_entry WHERE id = '{id}'"
    );
    server.store.sql(&statement).await;
}

#[tokio::test]
async fn an_interrupted_unlock_is_resolved_at_the_next_start() {
    // Two releases without an outcome. The lease of the first still exists: unknown, also after ten seconds of reads,
    // because it is not stored whether the release was sent. That of the second was revoked: released.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let (untouched, revoked) = (
        server.hold(&operator, "untouched").await,
        server.hold(&operator, "revoked").await,
    );
    let ids = [
        server.begun(&operator, &untouched).await,
        server.begun(&operator, &revoked).await,
    ];
    for id in &ids {
        cut_off(&server, id).await;
    }
    let revocation = domain::lease::Revocation {
        by: "operator".into(),
        reason: crate::unlock::requests::REASON.into(),
        audit_id: "1".into(),
    };
    let lease = domain::lease::LeaseId::parse(&revoked.lease).unwrap();
    let leases = &server.serving.leases;
    leases
        .revoke(lease, revocation, std::time::Duration::ZERO)
        .await
        .unwrap();

    let server = server.restart().await;
    for id in &ids {
        assert_eq!(
            server.unlock_phases(id).await,
            ["intent pending", "outcome outcome_unknown"]
        );
    }
    let known: [Value; 2] = {
        eventually("both were read again", async || {
            let first = server.unlock_state(&operator, &ids[0]).await;
            is_still_held(&first)
                && server.unlock_state(&operator, &ids[1]).await["state"] != "outcome_unknown"
        })
        .await;
        [
            server.unlock_state(&operator, &ids[0]).await,
            server.unlock_state(&operator, &ids[1]).await,
        ]
    };
    assert_eq!(
        (&known[0]["state"], &known[1]["state"]),
        (&json!("outcome_unknown"), &json!("released"))
    );
    let why = known[0]["outcome"]["why"].as_str().unwrap();
    assert!(why.starts_with("the server stopped during the release"), "{why}");
    assert!(server.is_held(&operator, &untouched).await);
}

/// Later reads found the same holder.
fn is_still_held(unlock: &Value) -> bool {
    let why = unlock["outcome"]["why"].as_str().unwrap_or_default();
    why.contains("may still take effect")
}

const KEY: &str = "advisory:postgres:42";

/// The process of a session on this machine.
async fn process_of(session: &mut PgConnection) -> Pid {
    let pid: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
        .fetch_one(session)
        .await
        .unwrap();
    Pid::from_raw(pid).unwrap()
}

#[tokio::test]
async fn a_session_that_ends_late_is_never_recorded_as_refused() {
    // The session's process is stopped when the signal arrives: the release is sent, and has no effect until the
    // process continues, after ten seconds of reads.
    let (postgres, server) = postgres_and_server().await;
    let operator = server.operator().await;
    let mut holder = session(&postgres, "billing", "SELECT pg_advisory_lock(42)").await;
    let process = process_of(&mut holder).await;
    let held = server.inventory_lock(&operator, "orders-db", KEY).await;
    let id = server.begun(&operator, &held).await;
    kill_process(process, Signal::STOP).unwrap();
    let reply = server.confirm(&operator, &id, KEY).await;
    assert_eq!(state(&reply), (200, "outcome_unknown"), "{}", reply.1);
    eventually("the unchanged holder is recorded", async || {
        let unlock = server.unlock_state(&operator, &id).await;
        assert_eq!(unlock["state"], "outcome_unknown", "{unlock}");
        is_still_held(&unlock)
    })
    .await;
    kill_process(process, Signal::CONT).unwrap();
    eventually("it is released", async || {
        server.unlock_state(&operator, &id).await["state"] == "released"
    })
    .await;
    assert!(!is_alive(&mut holder).await);
    assert_eq!(
        server.unlock_phases(&id).await,
        [
            "intent pending",
            "act begun",
            "outcome outcome_unknown",
            "outcome outcome_unknown",
            "outcome released"
        ]
    );
}

#[tokio::test]
async fn a_late_answer_corrects_an_outcome_from_reads() {
    // While the release waits for the session to end, another process records an outcome. The answer counts, and its
    // entry names what it corrects.
    let (postgres, server) = postgres_and_server().await;
    let operator = server.operator().await;
    let mut holder = session(&postgres, "billing", "SELECT pg_advisory_lock(42)").await;
    let process = process_of(&mut holder).await;
    let held = server.inventory_lock(&operator, "orders-db", KEY).await;
    let id = server.begun(&operator, &held).await;
    kill_process(process, Signal::STOP).unwrap();
    let other = async {
        eventually("the release has begun", async || {
            server.unlock_state(&operator, &id).await["state"] == "outcome_unknown"
        })
        .await;
        let refused = format!(
            "UPDATE unlocks SET state = 'refused', outcome_entry = act_entry, ended_at = acted_at WHERE id = '{id}'"
        );
        server.store.sql(&refused).await;
        kill_process(process, Signal::CONT).unwrap();
    };
    let (reply, ()) = tokio::join!(server.confirm(&operator, &id, KEY), other);
    assert_eq!(state(&reply), (200, "released"), "{}", reply.1);
    assert_eq!(server.unlock_state(&operator, &id).await["state"], "released");
    let entries = server.unlock_entries().await;
    let last = entries.last().unwrap();
    assert_eq!(
        (last.phase.as_str(), last.outcome.as_str()),
        ("outcome", "released")
    );
    let after: Value = serde_json::from_str(last.after.as_ref().unwrap()).unwrap();
    assert_eq!(after["corrects"]["state"], "refused", "{after}");
}
