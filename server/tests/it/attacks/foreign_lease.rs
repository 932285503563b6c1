//! A lease of another principal: renewed, released, read and followed by its id; and its id searched for in every view.

use domain::access::{Grant, Right, Role};
use leasehold::identity::Secret;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

use crate::people::stage::{PASSWORD, Stage, acquire, call, get, on};
use crate::support::eventually::eventually;

const RESOURCE: &str = "tenant_1:billing";
/// Well formed, and of no lease.
const UNKNOWN_ID: &str = "01980000-0000-7000-8000-000000000000";

/// What a principal may try with a lease id.
const TRIES: [(Method, &str, Right); 4] = [
    (Method::POST, "/renew", Right::Lease),
    (Method::DELETE, "", Right::Lease),
    (Method::GET, "", Right::View),
    (Method::GET, "/events", Right::View),
];

fn lease_id(lease: &Value) -> String {
    lease["leaseId"].as_str().unwrap().to_owned()
}

fn request(stage: &Stage, (method, tail, _): &(Method, &str, Right), id: &str) -> RequestBuilder {
    Client::new().request(method.clone(), stage.url(&format!("/v1/locks/{id}{tail}")))
}

/// Without what differs from request to request.
fn neutral((status, mut problem): (StatusCode, Value)) -> (StatusCode, Value) {
    if let Some(fields) = problem.as_object_mut() {
        fields.remove("requestId");
    }
    (status, problem)
}

/// Every way in which a grant can cover the lease, and one in which it does not.
fn scopes(role: Role) -> [(&'static str, Vec<Grant>); 5] {
    [
        ("all", on(role, None, None)),
        ("builtin", on(role, Some("builtin"), None)),
        ("prefix", on(role, None, Some("tenant_1:"))),
        ("both", on(role, Some("builtin"), Some("tenant_1:"))),
        ("foreign", on(role, None, Some("tenant_2:"))),
    ]
}

async fn remaining_ms(stage: &Stage, holder: &Secret, id: &str) -> i64 {
    let (status, lease) = get(stage, holder, &format!("/v1/locks/{id}")).await;
    assert_eq!(
        (status, lease["state"].as_str()),
        (StatusCode::OK, Some("held")),
        "{lease}"
    );
    lease["remainingMs"].as_i64().unwrap()
}

#[tokio::test]
async fn foreign_lease_is_like_an_unknown_id_for_every_role() {
    // Role × scope × held and released × renew, release, get, events: always the answer for an id that was never issued.
    let stage = Stage::start().await;
    let holder = stage.token("holder", on(Role::Client, None, None)).await;
    let held = lease_id(&acquire(&stage, &holder, RESOURCE).await.1);
    let ended = lease_id(&acquire(&stage, &holder, "tenant_1:ended").await.1);
    let release = Client::new().delete(stage.url(&format!("/v1/locks/{ended}")));
    assert_eq!(call(release, &holder).await.0, StatusCode::OK);
    for role in Role::ALL {
        for (cut, grants) in scopes(role) {
            let other = stage.token(&format!("{}-{cut}", role.wire()), grants).await;
            for one in &TRIES {
                let unknown = neutral(call(request(&stage, one, UNKNOWN_ID), &other).await);
                // Without the right, or with one that its grants are too narrow for, the route itself refuses.
                let may = role.rights().contains(&one.2);
                let expected = if may {
                    StatusCode::NOT_FOUND
                } else {
                    StatusCode::FORBIDDEN
                };
                assert_eq!(unknown.0, expected, "{role:?} {cut} {one:?}: {}", unknown.1);
                for id in [&held, &ended] {
                    let foreign = neutral(call(request(&stage, one, id), &other).await);
                    assert_eq!(foreign, unknown, "{role:?} {cut} {one:?}");
                }
            }
        }
    }
    assert!(remaining_ms(&stage, &holder, &held).await > 0);
    let renew = Client::new().post(stage.url(&format!("/v1/locks/{held}/renew")));
    assert_eq!(call(renew, &holder).await.0, StatusCode::OK);
}

#[tokio::test]
async fn foreign_renewal_cannot_shorten_a_lease() {
    // A TTL of one second under a holder that counts on thirty.
    let stage = Stage::start().await;
    let holder = stage.token("holder", on(Role::Client, None, None)).await;
    let other = stage.token("other", on(Role::Operator, None, None)).await;
    let held = lease_id(&acquire(&stage, &holder, RESOURCE).await.1);
    let renew = Client::new().post(stage.url(&format!("/v1/locks/{held}/renew")));
    let (status, _) = call(renew.json(&json!({"ttlSeconds": 1})), &other).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(remaining_ms(&stage, &holder, &held).await > 1_000);
}

#[tokio::test]
async fn lease_of_a_user_belongs_to_all_sessions_of_that_user() {
    // Acquired in one session, released in another; a second user with the same role cannot.
    let stage = Stage::start().await;
    for name in ["ada", "bea"] {
        stage.person(name, on(Role::Operator, None, None)).await;
    }
    let (first, second) = (stage.signed_in("ada").await, stage.signed_in("ada").await);
    let bea = stage.signed_in("bea").await;
    let own = ("sec-fetch-site", "same-origin");
    let body = json!({"resource": RESOURCE, "ownerId": "ada", "ttlSeconds": 30}).to_string();
    let parts = [own, ("content-type", "application/json"), ("body", &body)];
    let answer = first.send(Method::POST, "/v1/locks/acquire", &parts).await;
    let id = lease_id(&answer.json().await.unwrap());
    let path = format!("/v1/locks/{id}");
    for (method, tail, _) in &TRIES {
        let answer = bea.send(method.clone(), &format!("{path}{tail}"), &[own]).await;
        assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{method} {tail}");
    }
    let answer = second.send(Method::DELETE, &path, &[own]).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_ne!(PASSWORD, "");
}

/// Every view of the lock that another principal can read.
const VIEWS: [&str; 9] = [
    "/v1/inventory",
    "/v1/inventory?q=billing",
    "/v1/inventory/builtin/tenant_1%3Abilling",
    "/v1/locks",
    "/v1/resources/tenant_1%3Abilling",
    "/v1/audit",
    "/locks",
    "/locks/builtin/tenant_1%3Abilling",
    "/audit",
];

async fn text(stage: &Stage, token: &Secret, path: &str) -> String {
    let request = Client::new().get(stage.url(path)).bearer_auth(token.expose());
    request.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn lease_id_is_in_no_view_of_another_principal() {
    // Held, with an unlock intent, after the forced unlock: in lists, details, raw records, unlocks, audit entries, pages.
    let stage = Stage::start().await;
    let holder = stage.token("holder", on(Role::Client, None, None)).await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    let id = lease_id(&acquire(&stage, &holder, RESOURCE).await.1);
    let detail = "/v1/inventory/builtin/tenant_1%3Abilling";
    eventually("it is listed", || async {
        get(&stage, &admin, detail).await.0 == StatusCode::OK
    })
    .await;
    let lock = get(&stage, &admin, detail).await.1;
    assert_eq!(lock["leaseId"], Value::Null);
    assert!(lock["unknown"]["leaseId"].is_string(), "{lock}");
    let generation = lock["generation"].as_str().unwrap();
    assert!(generation.starts_with("token:1:"), "{generation}");
    let nowhere = async |moment: &str| {
        for path in VIEWS {
            let page = text(&stage, &admin, path).await;
            assert!(!page.contains(&id), "{moment}: {path}: {page}");
        }
    };
    nowhere("held").await;
    let intent = json!({"backend": "builtin", "resource": RESOURCE, "generation": lock["generation"],
        "reason": "its worker is gone since 03:00"});
    let begin = Client::new().post(stage.url("/v1/unlocks")).json(&intent);
    let (status, unlock) = call(begin, &admin).await;
    assert_eq!(status, StatusCode::CREATED, "{unlock}");
    assert!(!unlock.to_string().contains(&id), "{unlock}");
    nowhere("intended").await;
    let path = format!("/v1/unlocks/{}", unlock["unlockId"].as_str().unwrap());
    let confirm = Client::new().post(stage.url(&format!("{path}/confirm")));
    let (_, done) = call(confirm.json(&json!({"resource": RESOURCE})), &admin).await;
    assert_eq!(done["state"], "released", "{done}");
    assert!(!done.to_string().contains(&id), "{done}");
    assert!(!text(&stage, &admin, &path).await.contains(&id));
    nowhere("unlocked").await;
    let rows = format!("{:?}", stage.record().await);
    assert!(rows.contains("FORCE_UNLOCK") && !rows.contains(&id), "{rows}");
}

#[tokio::test]
async fn lease_id_is_shown_to_its_principal() {
    // List, detail and raw record of the inventory, and the list of leases; the other lock's id stays hidden.
    let stage = Stage::start().await;
    let holder = stage.token("holder", on(Role::Client, None, None)).await;
    let other = stage.token("other", on(Role::Client, None, None)).await;
    let id = lease_id(&acquire(&stage, &holder, RESOURCE).await.1);
    let foreign = lease_id(&acquire(&stage, &other, "tenant_1:other").await.1);
    for path in ["/v1/inventory", "/v1/locks"] {
        eventually("both are listed", || async {
            let (_, list) = get(&stage, &holder, path).await;
            list["locks"].as_array().unwrap().len() == 2
        })
        .await;
        let list = text(&stage, &holder, path).await;
        assert!(list.contains(&id) && !list.contains(&foreign), "{path}: {list}");
    }
    let (_, lock) = get(&stage, &holder, "/v1/inventory/builtin/tenant_1%3Abilling").await;
    assert_eq!(lock["leaseId"], id);
    assert_eq!(lock["unknown"].get("leaseId"), None);
    assert_eq!(lock["raw"][0], json!({"name": "lease_id", "value": id}));
}
