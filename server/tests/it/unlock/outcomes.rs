//! Acts whose answer nobody heard: unknown, never anything else, until the lock was read again.

use std::time::Duration;

use leasehold::throwaway::{Redis, RedisOptions, Throwaway};
use serde_json::{Value, json};

use super::stage::{Caller, Home, Stage};
use crate::support::eventually::eventually;
use crate::support::proxy::{Link, Proxy};

async fn run<T: redis::FromRedisValue>(redis: &Redis, command: &[&str]) -> T {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut driver = client.get_multiplexed_async_connection().await.unwrap();
    let mut asked = redis::cmd(command[0]);
    for word in &command[1..] {
        asked.arg(*word);
    }
    asked.query_async(&mut driver).await.unwrap()
}

/// A key, and an unlock of it whose answers stop coming after `cut`; answers the unlock's id if its outcome is unknown.
async fn lose_the_answer(
    (stage, operator): (&Stage, &Caller),
    (redis, proxy): (&Redis, &Proxy),
    name: &str,
    cut: Duration,
) -> Option<String> {
    proxy.set(Link::Slow(Duration::from_millis(15))).await;
    let () = run(redis, &["SET", name, "owner"]).await;
    let held = stage.seen(operator, "cache", name).await;
    let id = stage.begun(operator, &held).await;
    let silence = async {
        tokio::time::sleep(cut).await;
        proxy.set(Link::OnlyToServer).await;
    };
    let (reply, ()) = futures::join!(stage.confirm(operator, &id, name), silence);
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
async fn a_lost_answer_is_unknown_until_the_lock_was_read_again() {
    // Redis is watched directly and unlocked through a slow proxy whose answers stop at another moment each time, until an
    // act was done and its answer lost: unknown. Read again it is gone: released, with a word on how that is known.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let proxy = Proxy::start(redis.port()).await;
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{}\"]\n\
         unlock_url = \"redis://127.0.0.1:{}\"\npatterns = [\"lock:*\"]\npoll = \"1s\"\ntimeout = \"1s\"\n",
        redis.port(),
        proxy.port()
    );
    let stage = Stage::on(Home::sqlite(), &toml).await;
    let operator = stage.operator().await;
    let mut lost = None;
    for round in 0..60 {
        let cut = Duration::from_millis(round * 11 % 260);
        let name = format!("lock:{round}");
        lost = lose_the_answer((&stage, &operator), (&redis, &proxy), &name, cut).await;
        if lost.is_some() {
            break;
        }
    }
    let id = lost.expect("an act was done and its answer lost");
    eventually("it is known after all", async || {
        stage.state(&operator, &id).await["state"] != "outcome_unknown"
    })
    .await;
    let known = stage.state(&operator, &id).await;
    assert_eq!(
        (&known["state"], &known["outcome"]["byRereading"]),
        (&json!("released"), &json!(true))
    );
    assert_eq!(
        stage.told(&id).await,
        [
            "intent pending",
            "act begun",
            "outcome outcome_unknown",
            "outcome released"
        ]
    );
    let rows = stage.record().await;
    let last = rows.iter().rfind(|row| row.unlock_id.as_deref() == Some(&id));
    assert_eq!(last.unwrap().actor_id, "system");
}

/// A server that stopped in the middle of an act left this behind.
async fn cut_off(stage: &Stage, id: &str) {
    let statement = format!(
        "UPDATE unlocks SET state = 'outcome_unknown', acted_at = expires_at, act_deadline = expires_at + 60000, \
         act_row = intent_row WHERE id = '{id}'"
    );
    stage.home.sql(&statement).await;
}

#[tokio::test]
async fn an_act_that_was_cut_off_is_told_at_the_next_start() {
    // Two acts without an outcome. The lease of one is still there: unknown first, and refused after ten seconds of
    // looking. That of the other was revoked: released.
    let stage = Stage::start().await;
    let operator = stage.operator().await;
    let (untouched, revoked) = (
        stage.hold(&operator, "untouched").await,
        stage.hold(&operator, "revoked").await,
    );
    let ids = [
        stage.begun(&operator, &untouched).await,
        stage.begun(&operator, &revoked).await,
    ];
    for id in &ids {
        cut_off(&stage, id).await;
    }
    let revocation = domain::lease::Revocation {
        by: "operator".into(),
        reason: super::stage::REASON.into(),
        audit_id: "1".into(),
    };
    let lease = domain::lease::LeaseId::parse(&revoked.lease).unwrap();
    let leases = &stage.serving.leases;
    leases
        .revoke(lease, revocation, std::time::Duration::ZERO)
        .await
        .unwrap();

    let stage = stage.again().await;
    for id in &ids {
        assert_eq!(
            stage.told(id).await,
            ["intent pending", "outcome outcome_unknown"]
        );
    }
    let known: [Value; 2] = {
        eventually("both are known", async || {
            let mut open = 0;
            for id in &ids {
                open += usize::from(stage.state(&operator, id).await["state"] == "outcome_unknown");
            }
            open == 0
        })
        .await;
        [
            stage.state(&operator, &ids[0]).await,
            stage.state(&operator, &ids[1]).await,
        ]
    };
    assert_eq!(
        (&known[0]["state"], &known[1]["state"]),
        (&json!("refused"), &json!("released"))
    );
    assert!(known[0]["outcome"]["why"].as_str().unwrap().contains("no effect"));
    assert!(stage.is_held(&operator, &untouched).await);
}
