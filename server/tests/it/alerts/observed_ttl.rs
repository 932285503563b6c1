//! Redis reports no TTL: the live rules and the preview use the largest time left that was observed.

use crate::support::{TestServer, client, token};
use std::time::Duration;

use ::testkit::{RedisOptions, Throwaway};
use domain::access::Role;
use serde_json::json;

use testkit::eventually;

#[tokio::test(flavor = "multi_thread")]
async fn silent_redis_holder_fires_live_and_in_the_preview() {
    // Renewed every second of twelve, six times, then silent. A second lock is renewed to the end.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let console = TestServer::builder().config(&format!(
        "[[backend]]\nname = \"carts\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"lock:*\"]\npoll_interval = \"1s\"\n",
        redis.url()
    )).operator().start()
    .await;
    console.ready().await;
    let driver = redis::Client::open(redis.url()).unwrap();
    let mut connection = driver.get_multiplexed_async_connection().await.unwrap();
    for key in ["lock:silent", "lock:steady"] {
        let set = redis::cmd("SET")
            .arg(key)
            .arg("worker-1")
            .arg("PX")
            .arg(12_000)
            .to_owned();
        set.exec_async(&mut connection).await.unwrap();
    }
    console
        .inventory_where("backend=carts", |page| page["total"] == 2)
        .await;
    let mut renew = async |key: &str| {
        // The rhythm that the console learns.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let renew = redis::cmd("PEXPIRE").arg(key).arg(12_000).to_owned();
        renew.exec_async(&mut connection).await.unwrap();
    };
    for _ in 0..6 {
        renew("lock:silent").await;
        renew("lock:steady").await;
    }
    let admin = token(&console.serving, Role::Admin).await;
    let admin = client(admin.expose(), Duration::from_secs(60));
    // By default it fires after the lease of this test has ended.
    let body = json!({
        "id": "near_expiry", "condition": "near_expiry", "name": "Near", "severity": "warning", "for": "0s"
    });
    let saved = admin.put(console.url("/v1/rules")).json(&body).send().await;
    assert_eq!(saved.unwrap().status(), 200);
    let fires = async || {
        let alerts = console.json("/v1/alerts").await;
        let all = alerts["alerts"].as_array().unwrap().clone();
        let of = |alert: &&serde_json::Value| alert["rule"] == "near_expiry" && alert["state"] == "firing";
        all.iter().filter(of).count()
    };
    eventually("the silence fires", async || {
        renew("lock:steady").await;
        fires().await == 1
    })
    .await;
    eventually("the preview has it", async || {
        renew("lock:steady").await;
        let request = admin.post(console.url("/v1/rules/preview")).json(&body);
        let preview: serde_json::Value = request.send().await.unwrap().json().await.unwrap();
        preview["count"] == 1 && preview["acquisitionsWithoutTtl"] == 0
    })
    .await;
    assert_eq!(fires().await, 1);
}
