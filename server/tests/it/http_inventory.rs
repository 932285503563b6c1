//! The inventory over HTTP, from real Redis and etcd through a whole server.

use crate::support::TestServer;
use ::testkit::{Etcd, EtcdOptions, Redis, RedisOptions, Throwaway};
use serde_json::{Value, json};

use crate::support::redis_keys::redis_do;
use testkit::eventually;

async fn servers() -> (Redis, Etcd) {
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let etcd = Throwaway::etcd(EtcdOptions {
        fast: true,
        ..EtcdOptions::default()
    })
    .await
    .unwrap();
    (redis, etcd)
}

fn toml(redis: &Redis, etcd: &Etcd) -> String {
    format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npoll_interval = \"1s\"\n\
         [[backend]]\nname = \"coord\"\nkind = \"etcd\"\nendpoints = [\"{}\"]\npoll_interval = \"1s\"\n",
        redis.url(),
        etcd.endpoint()
    )
}

fn names(page: &Value) -> Vec<&str> {
    page["locks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lock| lock["resource"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn locks_of_two_backends_are_listed_with_reasons_for_nulls() {
    // A Redis key and an etcd key; each null field of each lock is named in `unknown` or `absent`.
    let (redis, etcd) = servers().await;
    redis_do(
        &redis,
        &["SET", "lock:tenant_1:a", "secret-of-worker", "PX", "60000", "NX"],
    )
    .await;
    let mut client = etcd_client::Client::connect([etcd.endpoint()], None)
        .await
        .unwrap();
    let lease = client.lease_grant(60, None).await.unwrap().id();
    let options = etcd_client::PutOptions::new().with_lease(lease);
    client
        .put("/locks/tenant_2/b", "worker-2", Some(options))
        .await
        .unwrap();
    let console = TestServer::builder()
        .config(&toml(&redis, &etcd))
        .operator()
        .start()
        .await;
    let page = console
        .inventory_where("sort=resource", |page| {
            page["total"] == 2 && page["complete"] == true
        })
        .await;
    assert_eq!(names(&page), ["/locks/tenant_2/b", "lock:tenant_1:a"]);
    let nullable = [
        "ownerId",
        "leaseId",
        "generation",
        "fencingToken",
        "acquiredAt",
        "expiresAt",
        "heldMs",
        "ttlMs",
        "remainingMs",
        "waiterCount",
        "renewal",
    ];
    for lock in page["locks"].as_array().unwrap() {
        for field in nullable {
            let explained = !lock["unknown"][field].is_null() || !lock["absent"][field].is_null();
            assert_eq!(lock[field].is_null(), explained, "{field} of {lock}");
        }
        assert!(lock["remainingMs"].as_i64().unwrap() > 40_000);
        assert!(lock["heldAtLeastMs"].as_i64().is_some());
    }
    let text = page.to_string();
    assert!(!text.contains("secret-of-worker"), "a raw value is a secret");
    assert!(
        page["locks"][1]["ownerId"]
            .as_str()
            .unwrap()
            .starts_with("fingerprint:")
    );
    assert!(page["locks"][0]["fencingToken"].is_string());
}

#[tokio::test]
async fn bad_parameters_are_problems_that_name_the_field() {
    // Each bad value: 400, problem+json, code, field, request id; an unknown path and method likewise.
    let console = TestServer::builder().operator().start().await;
    for (path, field) in [
        ("/v1/inventory?state=broken", "state"),
        ("/v1/inventory?limit=0", "limit"),
        ("/v1/inventory?limit=1001", "limit"),
        ("/v1/inventory?sort=colour", "sort"),
        ("/v1/inventory?cursor=nonsense", "cursor"),
        ("/v1/inventory?backend=nowhere", "backend"),
        ("/v1/inventory?colour=red", "colour"),
        ("/v1/prefixes?prefx=a", "prefx"),
    ] {
        let answer = console.get(path).await;
        assert_eq!(answer.status(), 400, "{path}");
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        let problem: Value = answer.json().await.unwrap();
        assert_eq!(problem["field"], field, "{problem}");
        assert_eq!(problem["requestId"], id);
        assert_eq!(problem["code"], "invalid_parameter");
    }
    for (path, code) in [
        ("/v1/nowhere", "no_such_route"),
        ("/v1/inventory/nowhere/a", "not_found"),
        ("/v1/inventory/Not_A_Name/a", "not_found"),
    ] {
        let answer = console.get(path).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(answer.json::<Value>().await.unwrap()["code"], code, "{path}");
    }
    let posted = console
        .client
        .post(console.url("/v1/inventory"))
        .send()
        .await
        .unwrap();
    assert_eq!(posted.status(), 405);
}

#[tokio::test]
async fn the_segment_tree_counts_and_descends() {
    // Three keys under two tenants; each level's counts add up.
    let (redis, etcd) = servers().await;
    for key in ["lock:t1:a", "lock:t1:b", "lock:t2:a"] {
        redis_do(&redis, &["SET", key, "v", "PX", "60000"]).await;
    }
    let console = TestServer::builder()
        .config(&toml(&redis, &etcd))
        .operator()
        .start()
        .await;
    console.inventory_where("", |page| page["total"] == 3).await;
    let root = console.json("/v1/prefixes").await;
    assert_eq!(
        (root["total"].clone(), root["children"][0]["prefix"].clone()),
        (json!(3), json!("lock:"))
    );
    let node = console.json("/v1/prefixes?prefix=lock:").await;
    let children: Vec<_> = node["children"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| (&c["segment"], &c["locks"]))
        .collect();
    assert_eq!(children, [(&json!("t1:"), &json!(2)), (&json!("t2:"), &json!(1))]);
    assert_eq!(node["children"][0]["states"], json!({"healthy": 2}));
}

#[tokio::test]
async fn pages_follow_each_other_without_gap_or_repeat() {
    // 25 keys in pages of 7, in every order.
    let (redis, etcd) = servers().await;
    for number in 0..25 {
        redis_do(
            &redis,
            &[
                "SET",
                &format!("lock:{number:02}"),
                "v",
                "PX",
                &(60_000 + number * 500).to_string(),
            ],
        )
        .await;
    }
    let console = TestServer::builder()
        .config(&toml(&redis, &etcd))
        .operator()
        .start()
        .await;
    console.inventory_where("", |page| page["total"] == 25).await;
    for sort in [
        "resource",
        "-resource",
        "held",
        "-remaining",
        "remaining",
        "waiters",
        "-state",
    ] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = console
                .json(&format!("/v1/inventory?sort={sort}&limit=7&cursor={cursor}"))
                .await;
            seen.extend(names(&page).into_iter().map(str::to_owned));
            match page["nextCursor"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(seen.len(), 25, "{sort}");
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 25, "{sort}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_utf8_is_listed_and_found_by_its_text_form() {
    // Bytes 0xff and a backslash: the text form escapes both, `resourceBytes` has the exact bytes.
    let (redis, etcd) = servers().await;
    let client = redis::Client::open(redis.url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let key: &[u8] = b"lock:\xff\\x";
    let _: () = redis::cmd("SET")
        .arg(key)
        .arg("v")
        .arg("PX")
        .arg(60_000)
        .query_async(&mut connection)
        .await
        .unwrap();
    let console = TestServer::builder()
        .config(&toml(&redis, &etcd))
        .operator()
        .start()
        .await;
    let page = console.inventory_where("", |page| page["total"] == 1).await;
    assert_eq!(page["locks"][0]["resource"], "lock:\\xff\\\\x");
    assert_eq!(page["locks"][0]["resourceBytes"], "bG9jazr/XHg=");
    let found = console.json("/v1/inventory/cache/lock:%5Cxff%5C%5Cx").await;
    assert_eq!(found["resource"], "lock:\\xff\\\\x");
    assert!(found["raw"].as_array().unwrap().len() > 1);
}

#[tokio::test]
async fn a_failed_backend_leaves_stale_rows_and_partial_coverage() {
    // Redis is killed: its row stays as stale, and etcd is still read. After the restart everything is live.
    let (redis, etcd) = servers().await;
    redis_do(&redis, &["SET", "lock:a", "v", "PX", "600000"]).await;
    let console = TestServer::builder()
        .config(&toml(&redis, &etcd))
        .operator()
        .start()
        .await;
    console
        .inventory_where("", |page| page["total"] == 1 && page["complete"] == true)
        .await;
    redis.kill().await.unwrap();
    let page = console
        .inventory_where("", |page| page["locks"][0]["state"] == "stale")
        .await;
    assert_eq!(
        (page["total"].clone(), page["complete"].clone()),
        (json!(1), json!(false))
    );
    assert_eq!(page["backends"][1]["status"], "live");
    assert!(page["backends"][0]["error"]["remedy"].as_str().unwrap().len() > 10);
    redis.restart().await.unwrap();
    // Without a file behind it Redis comes back empty: now the lock is known to be gone.
    console
        .inventory_where("", |page| page["total"] == 0 && page["complete"] == true)
        .await;
    let gone = console.get("/v1/inventory/cache/lock:a").await;
    assert_eq!(gone.status(), 404);
    assert!(
        gone.json::<Value>().await.unwrap()["detail"]
            .as_str()
            .unwrap()
            .contains("last seen")
    );
}

#[tokio::test]
async fn the_event_stream_sends_a_snapshot_and_changes() {
    // Hello at once; a new key makes a revision that counts it.
    let (redis, etcd) = servers().await;
    let console = TestServer::builder()
        .config(&toml(&redis, &etcd))
        .operator()
        .start()
        .await;
    console.ready().await;
    let mut stream = console.get("/v1/events").await;
    let mut text = String::new();
    while !text.contains("event: hello") {
        text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    redis_do(&redis, &["SET", "lock:new", "v", "PX", "60000"]).await;
    while !text.contains("\"heldTotal\":1") {
        text.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    assert!(text.contains("event: revision") && text.contains("\"status\":\"live\""));
}

#[tokio::test]
async fn the_description_names_every_route() {
    // OpenAPI is generated from the handlers: each described path must exist, and the known ones must be described.
    let console = TestServer::builder().operator().start().await;
    let description = console.json("/v1/openapi.json").await;
    let paths = description["paths"].as_object().unwrap();
    for path in [
        "/v1/inventory",
        "/v1/inventory/{backend}/{resource}",
        "/v1/prefixes",
        "/v1/backends",
        "/v1/events",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    for path in paths
        .keys()
        .filter(|path| !path.contains('{') && *path != "/v1/events")
    {
        assert_ne!(console.get(path).await.status(), 404, "{path}");
    }
}

#[tokio::test]
async fn shutdown_ends_open_streams_and_drains() {
    // An open event stream does not hold the server up.
    let console = TestServer::builder().operator().start().await;
    let mut stream = console.get("/v1/events").await;
    let _hello = stream.chunk().await.unwrap();
    let address = console.serving.address;
    drop(console);
    while let Ok(Some(_)) = stream.chunk().await {}
    eventually("the port is closed", || async {
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn an_address_other_than_loopback_is_refused_with_a_reason() {
    // Without a certificate and without a proxy, requested directly and not by the configuration.
    let setup = leasehold::serve::Setup {
        store: "sqlite:never-opened.db".to_owned().into(),
        lease: lease::LeaseConfig::default(),
        listen: "0.0.0.0:0".parse().unwrap(),
        backends: Vec::new(),
        identity_rules: Vec::new(),
        access: config::AccessConfig::default(),
        history: config::HistoryConfig::default(),
        notify: config::NotifyConfig::default(),
        demo: None,
        clock: runtime::clock::Clock::start(),
        stop: tokio_util::sync::CancellationToken::new(),
    };
    let error = leasehold::serve::start(setup).await.err().unwrap().to_string();
    assert!(
        error.contains("unencrypted") && error.contains("listen"),
        "{error}"
    );
}
