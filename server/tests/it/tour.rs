//! The tour on the overview: in the demo only, until the user closes it.

use crate::support::TestServer;
use domain::access::{Grant, Role};

/// Hrefs of the steps.
const STEPS: [&str; 4] = [
    "/locks?q=payout",
    "/locks/builtin/close",
    "/unlock/builtin/mail",
    "/alerts/rules/long_held",
];

#[tokio::test]
async fn the_tour_stays_closed_for_the_user_who_closed_it() {
    // A new page and a new session of ada have none; bea still has it.
    let server = TestServer::builder().demo("leasehold user link").start().await;
    for name in ["ada", "bea"] {
        let viewer = vec![Grant::everywhere(Role::Viewer)];
        server.add_user(name, viewer).await;
    }
    let ada = server.signed_in("ada").await;
    let page = ada.get("/").await.text().await.unwrap();
    for step in STEPS {
        assert!(page.contains(&format!("href=\"{step}\"")), "{step}: {page}");
    }
    let closed = ada.post("/tour/dismiss", &[]).await;
    assert_eq!(closed.status(), 303);
    assert_eq!(closed.headers()["location"], "/");
    for browser in [&ada, &server.signed_in("ada").await] {
        let page = browser.get("/").await.text().await.unwrap();
        assert!(!page.contains("class=\"tour\""), "{page}");
    }
    let bea = server.signed_in("bea").await;
    let page = bea.get("/").await.text().await.unwrap();
    assert!(page.contains("class=\"tour\""), "{page}");
}

#[tokio::test]
async fn there_is_no_tour_outside_of_the_demo() {
    let server = TestServer::start().await;
    server.add_user("ada", vec![Grant::everywhere(Role::Admin)]).await;
    let ada = server.signed_in("ada").await;
    let page = ada.get("/").await.text().await.unwrap();
    assert!(!page.contains("class=\"tour\""), "{page}");
    assert_eq!(ada.post("/tour/dismiss", &[]).await.status(), 303);
}
