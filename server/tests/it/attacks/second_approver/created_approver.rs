//! The first creates the second approver, and signs in as that user by a link or a password.

use leasehold::audit::Origin;
use reqwest::Method;
use serde_json::json;

use super::stage::{A_DAY_LATER, PASSWORD, by_link, call, id_of, is_refused, make_user, scene_on};
use crate::unlock::stage::{Caller, Home};

#[tokio::test]
async fn approver_created_by_the_first_within_a_day() {
    for home in [Home::sqlite(), Home::postgres().await] {
        let scene = scene_on(home).await;
        let stage = &scene.stage;
        let puppet = make_user(stage, &scene.ada, "puppet", "approver").await;
        let puppet = by_link(stage, &scene.ada, &puppet).await;
        let id = stage.begun(&scene.ada, &scene.held).await;
        let same_person = "same person is behind both sessions";
        is_refused(&scene, &puppet, &id, same_person).await;
        // With a password instead of the link, from a session that no link opened.
        let user = id_of(stage, "puppet");
        let path = format!("/v1/people/{user}/password");
        call(
            stage,
            &scene.ada,
            Method::PUT,
            &path,
            json!({"password": PASSWORD}),
        )
        .await;
        let password = PASSWORD.into();
        let signed_in = stage
            .identity()
            .sign_in("puppet", &password, &Origin::default())
            .await;
        let puppet = Caller::Browser(signed_in.unwrap().secret.expose().to_owned());
        is_refused(&scene, &puppet, &id, "within 24 h").await;
        stage.home.sql(A_DAY_LATER).await;
        assert_eq!(stage.act(&puppet, &id, "approve").await.0, 200);
    }
}
