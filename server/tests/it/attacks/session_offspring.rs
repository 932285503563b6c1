//! A stolen session of an admin makes links to outlive itself.

use crate::support::{TestServer, code, on};
use crate::unlock::pages::see;
use domain::access::Role;
use serde_json::json;

#[tokio::test]
async fn a_link_for_oneself_is_refused_and_not_offered() {
    // Its session would be fresh without the password, again and again. Another user gets one, and so does this user by
    // the command on the server.
    let server = TestServer::start().await;
    let ada = server.user("ada", on(Role::Admin, None, None)).await;
    server.user("bob", on(Role::Viewer, None, None)).await;
    let (own, other) = (server.user_id("ada"), server.user_id("bob"));
    let make_link = async |user: &str| {
        let path = format!("/v1/users/{user}/link");
        server.as_user(&ada).post(&path, &json!({})).await
    };
    let refused = make_link(&own).await;
    assert_eq!(code(&refused), (400, "invalid"), "{}", refused.1);
    assert_eq!(refused.1["field"], "user");
    let detail = refused.1["detail"].as_str().unwrap();
    assert!(detail.contains("`leasehold user link`"), "{detail}");
    assert_eq!(make_link(&other).await.0, 201);
    for (user, is_offered) in [(&own, false), (&other, true)] {
        let page = see(&server, &ada, &format!("/settings/users/{user}")).await;
        let text = &page.is(200).text;
        assert_eq!(text.contains("Create a sign-in link"), is_offered, "{text}");
    }
    server.sign_in("ada").await;
}
