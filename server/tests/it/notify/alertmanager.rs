//! A real Alertmanager, with a webhook of its own behind it that shows what it made of what we said.

use leasehold::notify::{DeliveryState, Kind};
use leasehold::throwaway::{Alertmanager, AlertmanagerOptions, Throwaway};
use serde_json::Value;

use super::stage::{HOME, Stage, Store, config, firing, resolved};
use crate::support::ear::Ear;
use crate::support::eventually::eventually;

async fn manager(behind: &Ear) -> Alertmanager {
    let config = format!(
        "route: {{receiver: r, group_by: [resource], group_wait: 0s, group_interval: 1s, repeat_interval: 1h}}\n\
         receivers: [{{name: r, webhook_configs: [{{url: '{}', send_resolved: true}}]}}]\n",
        behind.url
    );
    Throwaway::alertmanager(AlertmanagerOptions { config })
        .await
        .unwrap()
}

/// What it holds now.
async fn held(manager: &Alertmanager) -> Vec<Value> {
    let url = format!("{}/api/v2/alerts", manager.url());
    let answer = reqwest::get(url).await.unwrap();
    answer.json().await.unwrap()
}

/// What it told on: resource and status.
fn told(behind: &Ear) -> Vec<String> {
    let said = |body: Value| format!("{} {}", body["alerts"][0]["labels"]["resource"], body["status"]);
    behind.heard().iter().map(|heard| said(heard.json())).collect()
}

async fn survives_a_restart(store: Store) {
    let behind = Ear::open().await;
    let manager = manager(&behind).await;
    let stage = Stage::on(store, config()).await;
    stage.add("am", Kind::Alertmanager, &[&manager.url()]).await;
    stage.tell(&firing("a")).await;
    stage.are(DeliveryState::Delivered).await;
    behind.hears(1).await;
    let first = held(&manager).await;
    assert_eq!(first[0]["labels"]["resource"], "a");
    assert_eq!(first[0]["generatorURL"], format!("{HOME}/locks/builtin/jobs"));
    let stage = stage.again().await;
    // Said again before it lapses, four seconds after it was said last.
    eventually("it is renewed", async || {
        let now = held(&manager).await;
        assert_eq!(now.len(), 1, "it lapsed");
        assert_eq!(now[0]["startsAt"], first[0]["startsAt"]);
        now[0]["endsAt"].as_str() > first[0]["endsAt"].as_str()
    })
    .await;
    let until = first[0]["endsAt"].as_str().unwrap().to_owned();
    eventually("it outlives what was said before the restart", async || {
        let now = held(&manager).await;
        assert_eq!(now.len(), 1, "it lapsed");
        now[0]["updatedAt"].as_str().unwrap() > until.as_str()
    })
    .await;
    stage.tell(&resolved(firing("a"))).await;
    behind.hears(2).await;
    eventually("it is gone", async || held(&manager).await.is_empty()).await;
    // Its end is said some times more, and then forgotten.
    eventually("nothing stands any more", async || {
        let count = "SELECT count(*) FROM standing_alerts";
        let left: i64 = match &stage.db {
            leasehold::db::Db::Sqlite(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
            leasehold::db::Db::Postgres(pool) => sqlx::query_scalar(count).fetch_one(pool).await.unwrap(),
        };
        left == 0
    })
    .await;
    assert_eq!(told(&behind), ["\"a\" \"firing\"", "\"a\" \"resolved\""]);
}

#[tokio::test]
async fn an_alert_fires_until_it_is_over_across_a_restart_without_loss_or_repeat() {
    // Told, renewed by another server, resolved; what Alertmanager tells on is one beginning and one end. On both stores.
    survives_a_restart(Store::sqlite()).await;
    survives_a_restart(Store::postgres().await).await;
}

#[tokio::test]
async fn every_peer_is_told_and_one_that_was_away_hears_it_when_it_is_back() {
    // Two that do not know of each other; one is killed before, and started again.
    let behind = Ear::open().await;
    let (one, two) = (manager(&behind).await, manager(&behind).await);
    two.kill().await.unwrap();
    let stage = Stage::start().await;
    stage
        .add("am", Kind::Alertmanager, &[&one.url(), &two.url()])
        .await;
    stage.tell(&firing("a")).await;
    let delivered = stage.are(DeliveryState::Delivered).await;
    let said = delivered[0].answer.as_deref().unwrap();
    assert!(said.starts_with("1 of 2 took it; http://127.0.0.1:"), "{said}");
    assert_eq!(held(&one).await.len(), 1);
    two.restart().await.unwrap();
    eventually("the other one hears it", async || held(&two).await.len() == 1).await;
}

#[tokio::test]
async fn what_a_dead_console_said_lapses_by_itself() {
    // Nobody renews: four intervals later Alertmanager lets it go.
    let behind = Ear::open().await;
    let manager = manager(&behind).await;
    let stage = Stage::start().await;
    stage.add("am", Kind::Alertmanager, &[&manager.url()]).await;
    stage.tell(&firing("a")).await;
    stage.are(DeliveryState::Delivered).await;
    behind.hears(1).await;
    let _left = stage.stopped().await;
    eventually("it lapses", async || held(&manager).await.is_empty()).await;
    eventually("its end is told", async || {
        told(&behind).last().unwrap() == "\"a\" \"resolved\""
    })
    .await;
}
