//! Viewers open pages of locks and previews of unlocks, each of which reads the backend, faster than it answers.

use crate::support::TestServer;
use crate::unlock::pages::{address, see};
use domain::names::BackendName;
use futures::FutureExt as _;

use testkit::eventually;

#[tokio::test]
async fn reads_for_pages_do_not_delay_a_forced_unlock() {
    // Every permit is in use: pages show the last observation, and an unlock reads the lock without a permit.
    let server = TestServer::start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "jobs/close").await;
    let builtin = BackendName::builtin();
    let mut permits = Vec::new();
    while let Some(permit) = server.serving.backends.page_read(&builtin).now_or_never() {
        permits.push(permit.unwrap());
    }
    eventually("a page without a read", async || {
        let path = "/v1/inventory/builtin/jobs%2Fclose";
        let (_, page) = server.as_user(&operator).get(path).await;
        page["freshError"].is_string()
    })
    .await;
    let preview = see(&server, &operator, &address(&held)).await;
    assert!(
        !preview.text.contains("read from the backend at"),
        "{}",
        preview.text
    );
    let id = server.begun(&operator, &held).await;
    let (status, unlock) = server.confirm(&operator, &id, "jobs/close").await;
    assert_eq!(status, 200, "{unlock}");
    assert!(!server.is_held(&operator, &held).await);
}
