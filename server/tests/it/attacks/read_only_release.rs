//! The read-only switch is on: nothing ends a lease but its holder.

use domain::access::Role;
use leasehold::identity::Who;
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::people::stage::{Stage, acquire, call, get, on};
use crate::support::eventually::eventually;

const RESOURCE: &str = "tenant_1:billing";
const LOCK: &str = "/v1/inventory/builtin/tenant_1%3Abilling";

async fn intent(stage: &Stage, token: &leasehold::identity::Secret) -> (StatusCode, Value) {
    let (_, lock) = get(stage, token, LOCK).await;
    let body = json!({"backend": "builtin", "resource": RESOURCE, "generation": lock["generation"],
        "reason": "its worker is gone since 03:00"});
    call(Client::new().post(stage.url("/v1/unlocks")).json(&body), token).await
}

#[tokio::test]
async fn read_only_leaves_a_lease_to_its_holder() {
    // An intent from before the switch, a new one, a release by another principal: refused. Renewal and release by the
    // holder: done.
    let stage = Stage::start().await;
    let holder = stage.token("holder", on(Role::Client, None, None)).await;
    let admin = stage.token("admin", on(Role::Admin, None, None)).await;
    let lease = acquire(&stage, &holder, RESOURCE).await.1;
    let lease = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
    eventually("it is listed", || async {
        get(&stage, &admin, LOCK).await.0 == StatusCode::OK
    })
    .await;
    let (status, unlock) = intent(&stage, &admin).await;
    assert_eq!(status, StatusCode::CREATED, "{unlock}");
    let identity = stage.identity();
    identity.set_read_only(&Who::system("test"), true).await.unwrap();

    assert_eq!(intent(&stage, &admin).await.0, StatusCode::FORBIDDEN);
    let id = unlock["unlockId"].as_str().unwrap();
    let confirm = Client::new().post(stage.url(&format!("/v1/unlocks/{id}/confirm")));
    let (status, problem) = call(confirm.json(&json!({"resource": RESOURCE})), &admin).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    let shorten = Client::new().post(stage.url(&format!("{lease}/renew")));
    let (status, _) = call(shorten.json(&json!({"ttlSeconds": 1})), &admin).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let release = || Client::new().delete(stage.url(&lease));
    assert_eq!(call(release(), &admin).await.0, StatusCode::NOT_FOUND);

    let renew = Client::new().post(stage.url(&format!("{lease}/renew")));
    assert_eq!(call(renew, &holder).await.0, StatusCode::OK);
    assert_eq!(call(release(), &holder).await.1, json!({"released": true}));
}
