//! A tenant reads what `/v1/backends` and error messages say about backends, sources and locks of others.

use domain::access::Role;
use reqwest::StatusCode;
use serde_json::Value;

use crate::people::stage::{Stage, acquire, get, on};
use crate::support::eventually::eventually;

const WITHHELD: [&str; 5] = ["address", "relistDifferences", "sources", "rights", "pastErrors"];

fn backend<'a>(all: &'a Value, name: &str) -> &'a Value {
    let mut all = all.as_array().unwrap().iter();
    all.find(|one| one["name"] == name).unwrap()
}

#[tokio::test]
async fn a_tenant_is_not_shown_what_describes_a_whole_backend() {
    // A reader of everything, a reader of one backend, and a tenant, at the same backend.
    let stage = Stage::start().await;
    let all = stage.token("all", on(Role::Operator, None, None)).await;
    let whole = stage.token("whole", on(Role::Viewer, Some("cache"), None)).await;
    let tenant = stage
        .token("tenant", on(Role::Viewer, None, Some("tenant_1")))
        .await;
    acquire(&stage, &all, "tenant_2:a").await;
    eventually("cache was read", || async {
        let (_, page) = get(&stage, &all, "/v1/backends").await;
        backend(&page, "cache")["status"] == "live"
    })
    .await;
    for reader in [&all, &whole] {
        let (_, page) = get(&stage, reader, "/v1/backends").await;
        let cache = backend(&page, "cache");
        for field in WITHHELD {
            assert!(!cache[field].is_null(), "{field}: {cache}");
        }
    }
    let (_, page) = get(&stage, &tenant, "/v1/backends").await;
    for name in ["cache", "builtin"] {
        let limited = backend(&page, name);
        for field in WITHHELD.into_iter().chain(["error"]) {
            assert!(limited[field].is_null(), "{field}: {limited}");
            assert!(limited["unknown"][field].is_string(), "{field}: {limited}");
        }
        assert_eq!(limited["status"], "live", "{limited}");
        assert_eq!(limited["locks"], 0, "{limited}");
    }
    assert!(
        !page.to_string().contains(&stage.redis.port().to_string()),
        "{page}"
    );
}

#[tokio::test]
async fn a_backend_out_of_scope_answers_like_one_that_does_not_exist() {
    // A reader of `cache` asks for `builtin`, which exists, and for a name that does not.
    let stage = Stage::start().await;
    let token = stage.token("one", on(Role::Viewer, Some("cache"), None)).await;
    let mut answers = Vec::new();
    for name in ["builtin", "nowhere"] {
        let (status, problem) = get(&stage, &token, &format!("/v1/inventory?backend={name}")).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        answers.push(detail.replace(name, "NAME"));
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].contains("there are cache"), "{}", answers[0]);
    let (status, _) = get(&stage, &token, "/v1/inventory?backend=cache").await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn an_unreachable_backend_shows_no_address_to_a_tenant() {
    // Redis goes away: the tenant learns that it does not answer, and nothing of its address or errors.
    let stage = Stage::start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", stage.redis.port())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("SET");
    let () = set
        .arg("tenant_1:a")
        .arg("w")
        .query_async(&mut redis)
        .await
        .unwrap();
    let all = stage.token("all", on(Role::Viewer, None, None)).await;
    let tenant = stage
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    eventually("the key is listed", || async {
        get(&stage, &all, "/v1/inventory?q=tenant_1").await.1["total"] == 1
    })
    .await;
    let port = stage.redis.port().to_string();
    let _ended = redis::cmd("SHUTDOWN")
        .arg("NOSAVE")
        .query_async::<()>(&mut redis)
        .await;
    eventually("the outage fires for a reader of everything", || async {
        let (_, page) = get(&stage, &all, "/v1/backends").await;
        let (_, alerts) = get(&stage, &all, "/v1/alerts").await;
        backend(&page, "cache")["error"].is_object() && alerts.to_string().contains("backend_unreachable")
    })
    .await;
    let (_, alerts) = get(&stage, &tenant, "/v1/alerts").await;
    assert!(alerts.to_string().contains("backend_unreachable"), "{alerts}");
    for path in [
        "/v1/alerts",
        "/v1/backends",
        "/v1/inventory",
        "/v1/inventory/cache/tenant_1:a",
        "/alerts",
        "/backends",
        "/",
        "/locks",
        "/locks/cache/tenant_1:a",
        "/unlock/cache/tenant_1:a",
    ] {
        let request = reqwest::Client::new()
            .get(stage.url(path))
            .bearer_auth(tenant.expose());
        let text = request.send().await.unwrap().text().await.unwrap();
        let own = stage.serving.address.port().to_string();
        assert!(!text.replace(&own, "").contains(&port), "{path}: {text}");
        assert!(
            !text.contains("onnection refused") && !text.contains("os error"),
            "{path}: {text}"
        );
    }
}
