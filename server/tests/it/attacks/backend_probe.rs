//! A tenant reads `/v1/backends` and error messages about backends, sources and locks of
//! others.

use crate::support::proxy::{Link, Proxy};
use crate::support::redis_keys::hold_key;
use crate::support::{TestCaller, TestServer, on};
use ::testkit::{RedisOptions, Throwaway};
use domain::access::Role;
use serde_json::Value;

use testkit::eventually;

const WITHHELD: [&str; 5] = ["address", "relistDifferences", "sources", "rights", "pastErrors"];

fn backend<'a>(all: &'a Value, name: &str) -> &'a Value {
    let mut all = all.as_array().unwrap().iter();
    all.find(|one| one["name"] == name).unwrap()
}

#[tokio::test]
async fn a_tenant_sees_no_figures_of_a_whole_backend() {
    // A reader of everything, a reader of one backend, and a tenant, at the same backend.
    let server = TestServer::builder().redis().start().await;
    let all = server.token("all", on(Role::Operator, None, None)).await;
    let whole = server.token("whole", on(Role::Viewer, Some("cache"), None)).await;
    let tenant = server
        .token("tenant", on(Role::Viewer, None, Some("tenant_1")))
        .await;
    server.as_user(&all).acquire("tenant_2:a").await;
    eventually("cache was read", || async {
        let (_, page) = server.as_user(&all).get("/v1/backends").await;
        backend(&page, "cache")["status"] == "live"
    })
    .await;
    for reader in [&all, &whole] {
        let (_, page) = server.as_user(reader).get("/v1/backends").await;
        let cache = backend(&page, "cache");
        for field in WITHHELD {
            assert!(!cache[field].is_null(), "{field}: {cache}");
        }
    }
    let (_, page) = server.as_user(&tenant).get("/v1/backends").await;
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
        !page.to_string().contains(&server.redis().port().to_string()),
        "{page}"
    );
}

#[tokio::test]
async fn a_backend_out_of_scope_is_like_an_unknown_one() {
    // A reader of `cache` asks for `builtin`, which exists, and for a name that does not.
    let server = TestServer::builder().redis().start().await;
    let token = server.token("one", on(Role::Viewer, Some("cache"), None)).await;
    let mut answers = Vec::new();
    for name in ["builtin", "nowhere"] {
        let (status, problem) = server
            .as_user(&token)
            .get(&format!("/v1/inventory?backend={name}"))
            .await;
        assert_eq!(status, 400, "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        answers.push(detail.replace(name, "NAME"));
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].contains("there are cache"), "{}", answers[0]);
    let (status, _) = server.as_user(&token).get("/v1/inventory?backend=cache").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn an_unreachable_backend_shows_no_address_to_a_tenant() {
    // Redis goes away: the tenant learns that it does not answer, and nothing of its address or errors.
    let server = TestServer::builder().redis().start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", server.redis().port())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let mut set = redis::cmd("SET");
    let () = set
        .arg("tenant_1:a")
        .arg("w")
        .query_async(&mut redis)
        .await
        .unwrap();
    let all = server.token("all", on(Role::Viewer, None, None)).await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    eventually("the key is listed", || async {
        server.as_user(&all).get("/v1/inventory?q=tenant_1").await.1["total"] == 1
    })
    .await;
    let port = server.redis().port().to_string();
    let _ended = redis::cmd("SHUTDOWN")
        .arg("NOSAVE")
        .query_async::<()>(&mut redis)
        .await;
    eventually("the outage fires for a reader of everything", || async {
        let (_, page) = server.as_user(&all).get("/v1/backends").await;
        let (_, alerts) = server.as_user(&all).get("/v1/alerts").await;
        backend(&page, "cache")["error"].is_object() && alerts.to_string().contains("backend_unreachable")
    })
    .await;
    let (_, alerts) = server.as_user(&tenant).get("/v1/alerts").await;
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
            .get(server.url(path))
            .bearer_auth(tenant.secret());
        let text = request.send().await.unwrap().text().await.unwrap();
        let own = server.serving.address.port().to_string();
        assert!(!text.replace(&own, "").contains(&port), "{path}: {text}");
        assert!(
            !text.contains("onnection refused") && !text.contains("os error"),
            "{path}: {text}"
        );
    }
}

#[tokio::test]
async fn a_failed_release_shows_no_address_to_a_tenant() {
    // Redis is read directly and unlocked through a proxy, whose connections are cut before the confirmation.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let proxy = Proxy::start(redis.port()).await;
    let toml = format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:{}\"]\n\
         unlock_url = \"redis://127.0.0.1:{}\"\npatterns = [\"tenant_1:*\"]\npoll_interval = \"1s\"\ntimeout = \"1s\"\n",
        redis.port(),
        proxy.port()
    );
    let server = TestServer::builder().config(&toml).start().await;
    hold_key(&redis, "tenant_1:a").await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let held = server.inventory_lock(&tenant, "cache", "tenant_1:a").await;
    let id = server.begun(&tenant, &held).await;
    proxy.set(Link::Cut).await;
    let (_, answer) = server.confirm(&tenant, &id, "tenant_1:a").await;
    let shown = server.unlock_state(&tenant, &id).await;
    assert_ne!(shown["state"], "released", "{shown}");
    // The other members contain random ids.
    for text in [
        &answer["detail"],
        &answer["remedy"],
        &answer["outcome"],
        &shown["outcome"],
    ] {
        let text = text.to_string();
        assert!(
            !text.contains(&proxy.port().to_string())
                && !text.contains("127.0.0.1")
                && !text.contains("onnection")
                && !text.contains("os error"),
            "{text}"
        );
    }
}

#[tokio::test]
async fn nodes_show_no_address_or_error_to_a_tenant() {
    // One of three nodes of a Redlock does not answer. The page of a tenant's lock and its forced unlock number the nodes;
    // their addresses and errors are only for a reader of the whole backend.
    let mut nodes = Vec::new();
    for _ in 0..2 {
        let node = Throwaway::redis(RedisOptions::default()).await.unwrap();
        hold_key(&node, "tenant_1:a").await;
        nodes.push(node);
    }
    let toml = format!(
        "[[backend]]\nname = \"quorum\"\nkind = \"redis\"\nmode = \"redlock\"\n\
         urls = [\"{}\", \"{}\", \"redis://127.0.0.1:1\"]\npatterns = [\"tenant_1:*\"]\n\
         unlock_user = \"leasehold-unlock\"\npoll_interval = \"1s\"\n",
        nodes[0].url(),
        nodes[1].url()
    );
    let server = TestServer::builder().config(&toml).start().await;
    let all = server.operator().await;
    let tenant = server
        .token("tenant", on(Role::Operator, None, Some("tenant_1")))
        .await;
    let held = server.inventory_lock(&all, "quorum", "tenant_1:a").await;
    let id = server.begun(&all, &held).await;
    let nodes_for =
        async |caller: &TestCaller| server.unlock_state(caller, &id).await["observed"]["nodes"].clone();
    let (whole, limited) = (nodes_for(&all).await, nodes_for(&tenant).await);
    assert_eq!(limited[2]["node"], "node 3");
    assert!(limited[2]["fault"].is_null(), "{limited}");
    let (address, fault) = (&whole[0]["node"], &whole[2]["fault"]);
    let (address, fault) = (address.as_str().unwrap(), fault.as_str().unwrap());
    let read = async |caller: &TestCaller, path: &str| {
        let answer = server.as_user(caller).send(reqwest::Method::GET, path).await;
        assert_eq!(answer.status(), 200, "{path}");
        String::from_utf8_lossy(&answer.bytes().await.unwrap()).into_owned()
    };
    let compare = async |path: &str| {
        assert!(read(&all, path).await.contains(address), "{path}");
        let text = read(&tenant, path).await;
        assert!(
            !text.contains(address) && !text.contains(fault) && !text.contains("os error"),
            "{path}: {text}"
        );
    };
    compare("/v1/inventory/quorum/tenant_1:a").await;
    compare("/api/unlock-review?backend=quorum&resource=tenant_1:a&search=").await;
    // No node has the account of the release.
    server.confirm(&all, &id, "tenant_1:a").await;
    compare(&format!("/v1/unlocks/{id}")).await;
}
