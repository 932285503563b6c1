//! Names below `leasehold/` coordinate the servers: no client acquires one, and no user unlocks
//! one.

use crate::support::{TestServer, on, reply};
use std::time::Duration;

use ::lease::{AcquireRequest, Acquired, LeaseCaller};
use domain::access::Role;
use domain::lease::{Metadata, Ttl};
use domain::names::{OwnerId, Resource};
use reqwest::{Client, Method};
use serde_json::{Value, json};

use testkit::eventually;

const ALERTS: &str = "leasehold/alerts";

fn is_reserved((status, problem): &(u16, Value)) {
    assert_eq!(
        (*status, &problem["code"], &problem["field"]),
        (400, &json!("reserved"), &json!("resource")),
        "{problem}"
    );
}

#[tokio::test]
async fn reserved_name_cannot_be_acquired_by_anyone() {
    // Every role that holds leases, immediately, with a wait, with a key, and as a signed-in
    // user; names that only look alike are free.
    let server = TestServer::builder().redis().start().await;
    for role in [Role::Client, Role::Operator, Role::Admin] {
        let token = server.token(role.as_str(), on(role, None, None)).await;
        for name in [
            ALERTS,
            "leasehold/history",
            "leasehold/",
            "leasehold/anything:else",
        ] {
            is_reserved(&server.as_user(&token).acquire(name).await);
            let body = json!({"resource": name, "ownerId": "w", "ttlSeconds": 30, "waitSeconds": 5});
            let waiting = Client::new().post(server.url("/v1/locks/acquire")).json(&body);
            is_reserved(&reply(token.authenticate(waiting.header("idempotency-key", "k"))).await);
        }
        for name in [
            "leasehold",
            "leasehold:alerts",
            "Leasehold/alerts",
            "my/leasehold/alerts",
        ] {
            let (status, lease) = server
                .as_user(&token)
                .acquire(&format!("{name}-{}", role.as_str()))
                .await;
            assert_eq!(
                (status, &lease["acquired"]),
                (200, &json!(true)),
                "{name}: {lease}"
            );
        }
    }
    server.add_user("root", on(Role::Admin, None, None)).await;
    let root = server.signed_in("root").await;
    let body = json!({"resource": ALERTS, "ownerId": "root", "ttlSeconds": 30}).to_string();
    let parts = [
        ("sec-fetch-site", "same-origin"),
        ("content-type", "application/json"),
        ("body", &*body),
    ];
    let answer = root.send(Method::POST, "/v1/locks/acquire", &parts).await;
    is_reserved(&(answer.status().as_u16(), answer.json().await.unwrap()));
}

#[tokio::test]
async fn reserved_lock_cannot_be_unlocked() {
    // Held by the server; an admin's intent over the API and several at once: refused, audited, and still held.
    let console = TestServer::builder().redis().start().await;
    let request = AcquireRequest {
        resource: Resource::from(ALERTS),
        owner: OwnerId::new("leasehold-1"),
        ttl: Ttl::parse(600, 3_600).unwrap(),
        wait: Duration::ZERO,
        metadata: Metadata::default(),
        idempotency_key: None,
    };
    let granted = console
        .serving
        .leases
        .acquire(&LeaseCaller::server(), request)
        .await;
    assert!(matches!(granted, Ok(Acquired::Granted { .. })));
    let admin = console.token("admin", on(Role::Admin, None, None)).await;
    let path = "/v1/inventory/builtin/leasehold%2Falerts";
    eventually("it is listed", || async {
        console.as_user(&admin).get(path).await.0 == 200
    })
    .await;
    let (_, lock) = console.as_user(&admin).get(path).await;
    let one = json!({"backend": "builtin", "resource": ALERTS, "generation": lock["generation"]});
    let mut intent = one.clone();
    intent["reason"] = json!("it is stuck since 03:00");
    let begin = Client::new().post(console.url("/v1/unlocks")).json(&intent);
    is_reserved(&reply(admin.authenticate(begin)).await);
    let several = json!({"reason": intent["reason"], "items": [one]});
    let several = Client::new().post(console.url("/v1/unlocks/bulk")).json(&several);
    let (_, several) = reply(admin.authenticate(several)).await;
    assert!(several.to_string().contains("reserved"), "{several}");
    assert!(
        console
            .audit_entries()
            .await
            .iter()
            .any(|row| row.outcome == "reserved")
    );
    let page = Client::new().get(console.url("/locks/builtin/leasehold%2Falerts"));
    let page = page.bearer_auth(admin.secret()).send().await.unwrap();
    assert!(
        page.text().await.unwrap().contains("is reserved"),
        "the page says why"
    );
    assert_eq!(
        console.as_user(&admin).get(path).await.1["generation"],
        lock["generation"]
    );
}
