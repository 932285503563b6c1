//! The charts of a lock's page, in the server's first HTML.

use super::stage::Stage;
use crate::support::eventually::eventually;

#[tokio::test]
async fn who_wrote_after_losing_the_lock_stands_on_its_page_as_a_window() {
    // Two owners one after the other; the first writes once more and is refused. The token alone tells whose write it was, and
    // that it came too late, though it may be older than our look at the lock.
    let stage = Stage::start().await;
    let name = "tenant_1:close";
    let (first, stale) = stage.acquire(name, "worker-3").await;
    let path = format!("/locks/builtin/{name}");
    eventually("the first holder is seen", async || {
        stage.page(&path).await.1.contains("holds it, token")
    })
    .await;
    stage.release(&first).await;
    let (_second, _) = stage.acquire(name, "worker-7").await;
    stage.refuse(name, stale, "ledger-db").await;
    let told = [
        "<bdi>worker-7</bdi>",
        "an owner still wrote",
        "class=\"zombie\"",
        "write refused",
        "refused by ledger-db",
        "<bdi>worker-3</bdi>",
        "id=\"hold-time\"",
        "What we saw happen",
        "?range=24h",
    ];
    let html = stage.page_telling(&path, &told).await;
    assert!(
        !html.contains(" style="),
        "the policy lets no inline style through"
    );
}

#[tokio::test]
async fn the_time_range_is_in_the_address_and_a_bad_one_is_told() {
    // A named range, two moments, and one that is none: then the page is there all the same.
    let stage = Stage::start().await;
    stage.acquire("r", "w").await;
    stage
        .page_telling("/locks/builtin/r", &["id=\"ownership\""])
        .await;
    let named = ["last 7 d", "<b aria-current=\"true\">7 d</b>"];
    stage.page_telling("/locks/builtin/r?range=7d", &named).await;
    let between = "/locks/builtin/r?from=2026-05-01T00:00:00Z&to=2026-05-01T06:00:00Z";
    let moments = ["2026-05-01 00:00:00 UTC to 2026-05-01 06:00:00 UTC"];
    stage.page_telling(between, &moments).await;
    let bad = ["range is none of 1h, 6h, 24h, 7d, 30d"];
    stage.page_telling("/locks/builtin/r?range=soon", &bad).await;
}

#[tokio::test]
async fn the_overview_tells_what_was_held_and_what_went_wrong() {
    // One refused write; held and waiting with their table, in the first HTML.
    let stage = Stage::start().await;
    let (_, token) = stage.acquire("tenant_1:a", "w-1").await;
    stage.refuse("tenant_1:a", token, "ledger-db").await;
    let told = [
        "All 1 lock",
        "id=\"held\"",
        "Held and waiting over time",
        "Fencing rejections",
        "1, last 1 h",
        "Forced unlocks",
    ];
    stage.page_telling("/?range=1h", &told).await;
    // Who sees another tenant alone is told nothing of it.
    let other = stage.viewer_of("tenant_2").await;
    let html = stage.page_telling_as(&other, "/", &["0, last 6 h"]).await;
    assert!(!html.contains("tenant_1:a"), "{html}");
}
