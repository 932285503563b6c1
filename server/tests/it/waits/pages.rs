//! The page without waits, with hostile names, and for readers of a part.

use domain::access::Role;

use super::{admin, deadlock_of_leases, deadlocked};
use crate::support::html::Html;
use crate::support::{TestServer, on};

#[tokio::test]
async fn the_page_without_waits_says_what_would_be_there() {
    let server = TestServer::builder().operator().start().await;
    let admin = admin(&server).await;
    testkit::eventually("the lease service was read", async || {
        server.as_user(&admin).get("/v1/waits").await.1["title"] == "No deadlock"
    })
    .await;
    let (status, html) = server.as_user(&admin).text("/waits").await;
    assert_eq!(status, 200);
    assert!(html.contains("No waits now") && html.contains("No identity rule is configured"));
    assert!(html.contains("queue of the lease service") && !html.contains("class=\"wg"));
    let (_, overview) = server.as_user(&admin).text("/").await;
    assert!(!overview.contains("deadlocks-head"));
}

#[tokio::test]
async fn names_of_owners_and_locks_stay_text() {
    // Markup in each name; the lease service refuses control characters.
    let server = TestServer::builder().operator().start().await;
    let admin = admin(&server).await;
    let hostile = "<img src=x onerror=alert(1)>\"'&";
    let (one, other) = (format!("a:{hostile}"), format!("b:{hostile}"));
    let (x, y) = (format!("x{hostile}"), format!("y{hostile}"));
    deadlock_of_leases(&server, &admin, (&one, &other), (&x, &y)).await;
    deadlocked(&server, &admin).await;
    for path in ["/waits", "/"] {
        let (_, html) = server.as_user(&admin).text(path).await;
        let page = Html::parse(&html);
        assert!(!page.elements.iter().any(|element| element == "img"), "{path}");
        assert!(page.text.contains("onerror=alert(1)"), "{path}");
    }
}

#[tokio::test]
async fn foreign_deadlocks_do_not_exist_for_a_reader_of_a_part() {
    // A deadlock of tenant 2, for a reader of tenant 1: API, page, overview and alerts have nothing of it.
    let server = TestServer::builder().operator().start().await;
    let admin = admin(&server).await;
    let locks = ("tenant_2:zebra", "tenant_2:index");
    deadlock_of_leases(&server, &admin, locks, ("zebra-1", "zebra-2")).await;
    deadlocked(&server, &admin).await;
    let reader = server
        .token("reader", on(Role::Viewer, None, Some("tenant_1")))
        .await;
    let (_, page) = server.as_user(&reader).get("/v1/waits").await;
    assert_eq!(
        (&page["deadlocksTotal"], &page["waitsTotal"]),
        (&0.into(), &0.into()),
        "{page}"
    );
    for path in ["/waits", "/", "/v1/waits", "/v1/alerts", "/alerts"] {
        let (status, text) = server.as_user(&reader).text(path).await;
        assert_eq!(status, 200, "{path}");
        assert!(
            !text.contains("zebra") && !text.contains("tenant_2"),
            "{path}: {text}"
        );
    }
}
