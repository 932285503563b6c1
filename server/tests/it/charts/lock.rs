//! The charts of a lock's page, in the server's first HTML.

use super::chart_pages::ChartPages;
use testkit::eventually;

#[tokio::test]
async fn a_zombie_window_is_on_the_page_of_its_lock() {
    // Two owners one after the other; the first writes once more and is rejected. The token
    // identifies the writer and proves the loss, even if it is older than our last reading of
    // the lock.
    let pages = ChartPages::start().await;
    let name = "tenant_1:close";
    let (first, stale) = pages.acquire(name, "worker-3").await;
    let path = format!("/locks/builtin/{name}");
    eventually("the first holder is seen", async || {
        pages.page(&path).await.1.contains("holds it, token")
    })
    .await;
    pages.release(&first).await;
    let (_second, _) = pages.acquire(name, "worker-7").await;
    pages.refuse(name, stale, "ledger-db").await;
    let texts = [
        "<bdi>worker-7</bdi>",
        "an owner still wrote",
        "class=\"zombie\"",
        "write rejected",
        "rejected by ledger-db",
        "<bdi>worker-3</bdi>",
        "id=\"hold-time\"",
        "Recent events",
        "?range=24h",
    ];
    let html = pages.page_with(&path, &texts).await;
    assert!(
        !html.contains(" style="),
        "the policy lets no inline style through"
    );
}

#[tokio::test]
async fn the_time_range_is_in_the_url_and_validated() {
    // A preset, two moments, and an invalid range: then the page is shown with an error.
    let pages = ChartPages::start().await;
    pages.acquire("r", "w").await;
    pages.page_with("/locks/builtin/r", &["id=\"ownership\""]).await;
    let named = ["last 7 d", "<b aria-current=\"true\">7 d</b>"];
    pages.page_with("/locks/builtin/r?range=7d", &named).await;
    let between = "/locks/builtin/r?from=2026-05-01T00:00:00Z&to=2026-05-01T06:00:00Z";
    let moments = ["2026-05-01 00:00:00 UTC to 2026-05-01 06:00:00 UTC"];
    pages.page_with(between, &moments).await;
    let bad = ["range must be one of 1h, 6h, 24h, 7d, 30d"];
    pages.page_with("/locks/builtin/r?range=soon", &bad).await;
}

#[tokio::test]
async fn the_overview_shows_held_locks_and_incidents() {
    // One refused write; held and waiting with their table, in the first HTML.
    let pages = ChartPages::start().await;
    let (_, token) = pages.acquire("tenant_1:a", "w-1").await;
    pages.refuse("tenant_1:a", token, "ledger-db").await;
    let texts = [
        "All 1\u{a0}lock",
        "id=\"held\"",
        "Held and waiting over time",
        "Fencing rejections",
        "1, last 1 h",
        "Forced unlocks",
    ];
    pages.page_with("/?range=1h", &texts).await;
    // A viewer of another tenant sees nothing of it.
    let other = pages.viewer_of("tenant_2").await;
    let none = ["No fencing rejections reported.", "<span class=\"note\">0, "];
    let html = pages.page_with_as(&other, "/", &none).await;
    assert!(!html.contains("tenant_1:a"), "{html}");
}
