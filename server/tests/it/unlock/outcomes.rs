//! Acts whose answer nobody heard: unknown, never anything else, until the lock was read again.

use leasehold::throwaway::{Redis, RedisOptions, Throwaway};
use serde_json::{Value, json};

use super::stage::{Home, Stage, state};
use crate::support::eventually::eventually;
use crate::support::proxy::{Link, Proxy};

async fn set(redis: &Redis, name: &str, value: &str) {
    let client = redis::Client::open(redis.url()).unwrap();
    let mut driver = client.get_multiplexed_async_connection().await.unwrap();
    let () = redis::cmd("SET")
        .arg(name)
        .arg(value)
        .query_async(&mut driver)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_lost_answer_is_unknown_until_the_lock_was_read_again() {
    // Redis is watched directly and unlocked through a proxy that lets the act through and its answer not: unknown. Read
    // again it is gone: released, with a word on how that is known.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let proxy = Proxy::start(redis.port()).await;
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{}\"]\n\
         unlock_url = \"redis://127.0.0.1:{}\"\npatterns = [\"lock:*\"]\npoll = \"1s\"\ntimeout = \"8s\"\n",
        redis.port(),
        proxy.port()
    );
    let stage = Stage::on(Home::sqlite(), &toml).await;
    let operator = stage.operator().await;
    // The first unlock opens the connection; the answer of a later one is lost.
    for (round, link) in [Link::Pass, Link::OnlyToServer].into_iter().enumerate() {
        let name = format!("lock:{round}");
        set(&redis, &name, "owner").await;
        let held = stage.seen(&operator, "cache", &name).await;
        let id = stage.begun(&operator, &held).await;
        proxy.set(link).await;
        let reply = stage.confirm(&operator, &id, &name).await;
        if link == Link::Pass {
            assert_eq!(state(&reply), (200, "released"), "{}", reply.1);
            continue;
        }
        assert_eq!(state(&reply), (200, "outcome_unknown"), "{}", reply.1);
        assert!(reply.1["outcome"]["why"].is_string() && reply.1["endedAt"].is_null());
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
        assert_eq!(stage.record().await.last().unwrap().actor_id, "system");
    }
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
