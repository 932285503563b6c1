//! Lock names of some KB: the cursor after such a page is one that the server accepts, and the stores have no shorter limit.

use crate::support::redis_keys::hold_key;
use crate::support::rng::Dice;
use crate::support::{Store, TestServer, on};
use crate::unlock::requests::state;
use ::testkit::{RedisOptions, Throwaway};
use domain::access::Role;
use domain::names::{BackendName, Resource};
use reqwest::Method;
use serde_json::{Value, json};

use testkit::eventually;

#[tokio::test]
async fn paging_continues_after_a_name_of_10_kb() {
    // Names that differ in their last byte only, one on each page.
    let server = TestServer::builder().redis().start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", server.redis().port())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let long = "x".repeat(10_000);
    let names = [
        "lock:a".to_owned(),
        format!("lock:{long}1"),
        format!("lock:{long}2"),
        "lock:z".to_owned(),
    ];
    for name in &names {
        let mut set = redis::cmd("SET");
        let () = set.arg(name).arg("worker").query_async(&mut redis).await.unwrap();
    }
    let token = server.token("viewer", on(Role::Viewer, None, None)).await;
    eventually("all locks are seen", async || {
        let (_, page) = server.as_user(&token).get("/v1/inventory").await;
        page["total"].as_u64() == Some(4)
    })
    .await;
    for sort in ["resource", "-resource"] {
        let first = format!("/v1/inventory?limit=1&sort={sort}");
        let (mut path, mut found) = (first.clone(), Vec::new());
        loop {
            let (status, page) = server.as_user(&token).get(&path).await;
            assert_eq!(status, 200, "{page}");
            found.push(page["locks"][0]["resource"].as_str().unwrap().to_owned());
            let Some(cursor) = page["nextCursor"].as_str() else {
                break;
            };
            path = format!("{first}&cursor={cursor}");
        }
        if sort == "-resource" {
            found.reverse();
        }
        assert_eq!(found, names, "{sort}");
    }
}

async fn released_by_force(home: Store) {
    // A name that does not compress: an alert about its lock fires, it is released, found in the audit log by whole name, by a
    // prefix longer than the index has, and by scope, and the alert resolves.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{0}\"]\nunlock_url = \"{0}\"\npoll_interval = \"1s\"\n",
        redis.url()
    );
    let server = TestServer::builder().config(&toml).start_on(home).await;
    let letters: Vec<char> = ('a'..='z').chain('A'..='Z').chain('0'..='9').collect();
    let mut dice = Dice::new(1);
    let random: String = (0..3_000).map(|_| *dice.pick(&letters)).collect();
    let name = format!("lock:{random}");
    hold_key(&redis, &name).await;
    let operator = server.operator().await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let rule = json!({
        "id": "held", "condition": "long_held", "prefix": "lock:", "anyPrefix": true, "for": "0s",
        "with": {"longer_than": "1s", "times_p95": ""}
    });
    server.as_user(&admin).done(Method::PUT, "/v1/rules", &rule).await;
    let is_firing = async || {
        let (_, open) = server.as_user(&operator).get("/v1/alerts").await;
        let fires = |alert: &Value| alert["rule"] == "held" && alert["state"] == "firing";
        open["alerts"].as_array().unwrap().iter().any(fires)
    };
    eventually("the alert fires", async || is_firing().await).await;
    let held = server.inventory_lock(&operator, "cache", &name).await;
    let id = server.begun(&operator, &held).await;
    let done = server.confirm(&operator, &id, &name).await;
    assert_eq!(state(&done), (200, "released"), "{}", done.1);
    eventually("the alert resolves", async || !is_firing().await).await;
    let (backend, resource) = (
        BackendName::parse("cache").unwrap(),
        Resource::from(name.as_str()),
    );
    let released = server.serving.unlocks.released(&backend, &resource, 10).await;
    assert_eq!(released.unwrap().len(), 1);
    let auditor = server
        .token("auditor", on(Role::Auditor, None, Some("lock:")))
        .await;
    let other = format!("{name}x");
    for (prefix, found) in [(name.as_str(), 3), (&name[..300], 3), (other.as_str(), 0)] {
        let path = format!("/v1/audit?unlockId={id}&prefix={prefix}");
        let (status, page) = server.as_user(&auditor).get(&path).await;
        assert_eq!(status, 200, "{page}");
        let entries = page["entries"].as_array().unwrap();
        assert_eq!(entries.len(), found, "{prefix}: {page}");
        assert!(entries.iter().all(|entry| entry["resource"] == name.as_str()));
    }
}

#[tokio::test]
async fn a_random_name_of_3_kb_is_released_on_sqlite() {
    released_by_force(Store::sqlite()).await;
}

#[tokio::test]
async fn a_random_name_of_3_kb_is_released_on_postgres() {
    released_by_force(Store::postgres().await).await;
}
