//! The first opens the account of another admin, and creates the second approver as that admin.

use domain::access::Role;
use leasehold::audit::Origin;
use reqwest::Method;
use serde_json::json;

use super::stage::{A_DAY_LATER, PASSWORD, call, id_of, is_refused, scene};
use crate::unlock::stage::{Caller, Stage, on};

async fn signed_in(stage: &Stage, name: &str) -> Caller {
    let (password, origin) = (PASSWORD.into(), Origin::default());
    let signed_in = stage.identity().sign_in(name, &password, &origin).await;
    Caller::Browser(signed_in.unwrap().secret.expose().to_owned())
}

#[tokio::test]
async fn approver_created_as_an_admin_whose_password_was_set() {
    let scene = scene().await;
    let stage = &scene.stage;
    stage.person("carol", on(Role::Admin, None, None)).await;
    let path = format!("/v1/people/{}/password", id_of(stage, "carol"));
    call(
        stage,
        &scene.ada,
        Method::PUT,
        &path,
        json!({"password": PASSWORD}),
    )
    .await;
    let carol = signed_in(stage, "carol").await;
    let body = json!({"name": "puppet", "grants": [{"role": "approver"}], "password": PASSWORD});
    call(stage, &carol, Method::POST, "/v1/people", body).await;
    let puppet = signed_in(stage, "puppet").await;
    let id = stage.begun(&scene.ada, &scene.held).await;
    is_refused(&scene, &puppet, &id, "was opened within 24 h by the other user").await;
    stage.home.sql(A_DAY_LATER).await;
    assert_eq!(stage.act(&puppet, &id, "approve").await.0, 200);
}
