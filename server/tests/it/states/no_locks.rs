//! The list of locks of an installation that has none.

use domain::access::Role;

use crate::support::{TestServer, on};

#[tokio::test(flavor = "multi_thread")]
async fn a_single_backend_without_locks_says_that_it_answers() {
    let server = TestServer::start().await;
    server.add_user("root", on(Role::Admin, None, None)).await;
    server.ready().await;
    let root = server.signed_in("root").await;
    let page = root.get("/locks").await.text().await.unwrap();
    assert!(page.contains("The backend answers, and holds no lock."), "{page}");
}
