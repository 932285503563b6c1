//! A lease of another principal: renewed, released, read and followed by its id; and its id searched for in every view.

use crate::support::{PASSWORD, TestCaller, TestServer, on, reply};
use domain::access::{Grant, Permission, Role};
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

use testkit::eventually;

const RESOURCE: &str = "tenant_1:billing";
/// Well formed, and of no lease.
const UNKNOWN_ID: &str = "01980000-0000-7000-8000-000000000000";

/// What a principal may try with a lease id.
const TRIES: [(Method, &str, Permission); 4] = [
    (Method::POST, "/renew", Permission::Lease),
    (Method::DELETE, "", Permission::Lease),
    (Method::GET, "", Permission::View),
    (Method::GET, "/events", Permission::View),
];

fn lease_id(lease: &Value) -> String {
    lease["leaseId"].as_str().unwrap().to_owned()
}

fn request(server: &TestServer, (method, tail, _): &(Method, &str, Permission), id: &str) -> RequestBuilder {
    Client::new().request(method.clone(), server.url(&format!("/v1/locks/{id}{tail}")))
}

/// Without fields that differ between requests.
fn neutral((status, mut problem): (u16, Value)) -> (u16, Value) {
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

async fn remaining_ms(server: &TestServer, holder: &TestCaller, id: &str) -> i64 {
    let (status, lease) = server.as_user(holder).get(&format!("/v1/locks/{id}")).await;
    assert_eq!((status, lease["state"].as_str()), (200, Some("held")), "{lease}");
    lease["remainingMs"].as_i64().unwrap()
}

#[tokio::test]
async fn foreign_lease_is_like_an_unknown_id_for_every_role() {
    // Each role, scope, held or released lease, and call (renew, release, get, events): always the answer for an id that was
    // never issued.
    let server = TestServer::builder().redis().start().await;
    let holder = server.token("holder", on(Role::Client, None, None)).await;
    let held = lease_id(&server.as_user(&holder).acquire(RESOURCE).await.1);
    let ended = lease_id(&server.as_user(&holder).acquire("tenant_1:ended").await.1);
    let release = Client::new().delete(server.url(&format!("/v1/locks/{ended}")));
    assert_eq!(reply(holder.authenticate(release)).await.0, 200);
    for role in Role::ALL {
        for (cut, grants) in scopes(role) {
            let other = server.token(&format!("{}-{cut}", role.as_str()), grants).await;
            for one in &TRIES {
                let unknown = neutral(reply(other.authenticate(request(&server, one, UNKNOWN_ID))).await);
                // Without the right, or with one that its grants are too narrow for, the route itself refuses.
                let may = role.rights().contains(&one.2);
                let expected = if may { 404 } else { 403 };
                assert_eq!(unknown.0, expected, "{role:?} {cut} {one:?}: {}", unknown.1);
                for id in [&held, &ended] {
                    let foreign = neutral(reply(other.authenticate(request(&server, one, id))).await);
                    assert_eq!(foreign, unknown, "{role:?} {cut} {one:?}");
                }
            }
        }
    }
    assert!(remaining_ms(&server, &holder, &held).await > 0);
    let renew = Client::new().post(server.url(&format!("/v1/locks/{held}/renew")));
    assert_eq!(reply(holder.authenticate(renew)).await.0, 200);
}

#[tokio::test]
async fn foreign_renewal_cannot_shorten_a_lease() {
    // A TTL of one second under a holder that counts on thirty.
    let server = TestServer::builder().redis().start().await;
    let holder = server.token("holder", on(Role::Client, None, None)).await;
    let other = server.token("other", on(Role::Operator, None, None)).await;
    let held = lease_id(&server.as_user(&holder).acquire(RESOURCE).await.1);
    let renew = Client::new().post(server.url(&format!("/v1/locks/{held}/renew")));
    let (status, _) = reply(other.authenticate(renew.json(&json!({"ttlSeconds": 1})))).await;
    assert_eq!(status, 404);
    assert!(remaining_ms(&server, &holder, &held).await > 1_000);
}

#[tokio::test]
async fn lease_of_a_user_belongs_to_all_sessions_of_that_user() {
    // Acquired in one session, released in another; a second user with the same role cannot.
    let server = TestServer::builder().redis().start().await;
    for name in ["ada", "bea"] {
        server.add_user(name, on(Role::Operator, None, None)).await;
    }
    let (first, second) = (server.signed_in("ada").await, server.signed_in("ada").await);
    let bea = server.signed_in("bea").await;
    let own = ("sec-fetch-site", "same-origin");
    let body = json!({"resource": RESOURCE, "ownerId": "ada", "ttlSeconds": 30}).to_string();
    let parts = [own, ("content-type", "application/json"), ("body", &body)];
    let answer = first.send(Method::POST, "/v1/locks/acquire", &parts).await;
    let id = lease_id(&answer.json().await.unwrap());
    let path = format!("/v1/locks/{id}");
    for (method, tail, _) in &TRIES {
        let answer = bea.send(method.clone(), &format!("{path}{tail}"), &[own]).await;
        assert_eq!(answer.status(), 404, "{method} {tail}");
    }
    let answer = second.send(Method::DELETE, &path, &[own]).await;
    assert_eq!(answer.status(), 200);
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

async fn text(server: &TestServer, token: &TestCaller, path: &str) -> String {
    let request = Client::new().get(server.url(path)).bearer_auth(token.secret());
    request.send().await.unwrap().text().await.unwrap()
}

#[tokio::test]
async fn lease_id_is_in_no_view_of_another_principal() {
    // Held, with an unlock intent, after the forced unlock: in lists, details, raw records, unlocks, audit entries, pages.
    let server = TestServer::builder().redis().start().await;
    let holder = server.token("holder", on(Role::Client, None, None)).await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let id = lease_id(&server.as_user(&holder).acquire(RESOURCE).await.1);
    let detail = "/v1/inventory/builtin/tenant_1%3Abilling";
    eventually("it is listed", || async {
        server.as_user(&admin).get(detail).await.0 == 200
    })
    .await;
    let lock = server.as_user(&admin).get(detail).await.1;
    assert_eq!(lock["leaseId"], Value::Null);
    assert!(lock["unknown"]["leaseId"].is_string(), "{lock}");
    let generation = lock["generation"].as_str().unwrap();
    assert!(generation.starts_with("token:1:"), "{generation}");
    let nowhere = async |moment: &str| {
        for path in VIEWS {
            let page = text(&server, &admin, path).await;
            assert!(!page.contains(&id), "{moment}: {path}: {page}");
        }
    };
    nowhere("held").await;
    let intent = json!({"backend": "builtin", "resource": RESOURCE, "generation": lock["generation"],
        "reason": "its worker is gone since 03:00"});
    let begin = Client::new().post(server.url("/v1/unlocks")).json(&intent);
    let (status, unlock) = reply(admin.authenticate(begin)).await;
    assert_eq!(status, 201, "{unlock}");
    assert!(!unlock.to_string().contains(&id), "{unlock}");
    nowhere("intended").await;
    let path = format!("/v1/unlocks/{}", unlock["unlockId"].as_str().unwrap());
    let confirm = Client::new().post(server.url(&format!("{path}/confirm")));
    let (_, done) = reply(admin.authenticate(confirm.json(&json!({"resource": RESOURCE})))).await;
    assert_eq!(done["state"], "released", "{done}");
    assert!(!done.to_string().contains(&id), "{done}");
    assert!(!text(&server, &admin, &path).await.contains(&id));
    nowhere("unlocked").await;
    let rows = format!("{:?}", server.audit_entries().await);
    assert!(rows.contains("FORCE_UNLOCK") && !rows.contains(&id), "{rows}");
}

#[tokio::test]
async fn lease_id_is_shown_to_its_principal() {
    // List, detail and raw record of the inventory, and the list of leases; the other lock's id stays hidden.
    let server = TestServer::builder().redis().start().await;
    let holder = server.token("holder", on(Role::Client, None, None)).await;
    let other = server.token("other", on(Role::Client, None, None)).await;
    let id = lease_id(&server.as_user(&holder).acquire(RESOURCE).await.1);
    let foreign = lease_id(&server.as_user(&other).acquire("tenant_1:other").await.1);
    for path in ["/v1/inventory", "/v1/locks"] {
        eventually("both are listed", || async {
            let (_, list) = server.as_user(&holder).get(path).await;
            list["locks"].as_array().unwrap().len() == 2
        })
        .await;
        let list = text(&server, &holder, path).await;
        assert!(list.contains(&id) && !list.contains(&foreign), "{path}: {list}");
    }
    let (_, lock) = server
        .as_user(&holder)
        .get("/v1/inventory/builtin/tenant_1%3Abilling")
        .await;
    assert_eq!(lock["leaseId"], id);
    assert_eq!(lock["unknown"].get("leaseId"), None);
    assert_eq!(lock["raw"][0], json!({"name": "lease_id", "value": id}));
}
