//! The first creates the second approver, and signs in as that user by a link or a password.

use super::protected_lock::{
    A_DAY_LATER, by_link, is_refused, make_user, scene_on, set_password, sign_in_by_password,
};
use crate::support::Store;

#[tokio::test]
async fn approver_created_by_the_first_within_a_day() {
    for home in [Store::sqlite(), Store::postgres().await] {
        let scene = scene_on(home).await;
        let server = &scene.server;
        let puppet = make_user(server, &scene.ada, "puppet", "approver").await;
        let puppet = by_link(server, &scene.ada, &puppet).await;
        let id = server.begun(&scene.ada, &scene.held).await;
        let same_user = "sessions belong to the same user";
        is_refused(&scene, &puppet, &id, same_user).await;
        // With a password instead of the link, from a session that no link opened.
        set_password(server, &scene.ada, "puppet").await;
        let puppet = sign_in_by_password(server, "puppet").await;
        is_refused(&scene, &puppet, &id, "within 24 h").await;
        server.store.sql(A_DAY_LATER).await;
        assert_eq!(server.unlock_step(&puppet, &id, "approve").await.0, 200);
    }
}
