//! The read-only switch is on: nothing ends a lease but its holder.

use crate::support::{TestCaller, TestServer, on, reply};
use domain::access::Role;
use leasehold::identity::Principal;
use reqwest::Client;
use serde_json::{Value, json};

use testkit::eventually;

const RESOURCE: &str = "tenant_1:billing";
const LOCK: &str = "/v1/inventory/builtin/tenant_1%3Abilling";

async fn intent(server: &TestServer, token: &TestCaller) -> (u16, Value) {
    let (_, lock) = server.as_user(token).get(LOCK).await;
    let body = json!({"backend": "builtin", "resource": RESOURCE, "generation": lock["generation"],
        "reason": "its worker is gone since 03:00"});
    server.as_user(token).post("/v1/unlocks", &body).await
}

#[tokio::test]
async fn read_only_leaves_a_lease_to_its_holder() {
    // An intent from before the switch, a new one, a release by another principal: refused. Renewal and release by the
    // holder: done.
    let server = TestServer::builder().redis().start().await;
    let holder = server.token("holder", on(Role::Client, None, None)).await;
    let admin = server.token("admin", on(Role::Admin, None, None)).await;
    let lease = server.as_user(&holder).acquire(RESOURCE).await.1;
    let lease = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    eventually("it is listed", || async {
        server.as_user(&admin).get(LOCK).await.0 == 200
    })
    .await;
    let (status, unlock) = intent(&server, &admin).await;
    assert_eq!(status, 201, "{unlock}");
    let identity = server.identity();
    identity
        .set_read_only(&Principal::system("test"), true)
        .await
        .unwrap();

    assert_eq!(intent(&server, &admin).await.0, 403);
    let id = unlock["unlockId"].as_str().unwrap();
    let confirm = Client::new().post(server.url(&format!("/v1/unlocks/{id}/confirm")));
    let (status, problem) = reply(admin.authenticate(confirm.json(&json!({"resource": RESOURCE})))).await;
    assert_eq!(status, 403, "{problem}");
    let shorten = Client::new().post(server.url(&format!("{lease}/renew")));
    let (status, _) = reply(admin.authenticate(shorten.json(&json!({"ttlSeconds": 1})))).await;
    assert_eq!(status, 404);
    let release = || Client::new().delete(server.url(&lease));
    assert_eq!(reply(admin.authenticate(release())).await.0, 404);

    let renew = Client::new().post(server.url(&format!("{lease}/renew")));
    assert_eq!(reply(holder.authenticate(renew)).await.0, 200);
    assert_eq!(
        reply(holder.authenticate(release())).await.1,
        json!({"released": true})
    );
}
