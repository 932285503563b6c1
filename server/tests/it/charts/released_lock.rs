//! The page of a released lock: its history stays, and it is never shown as free if that is not
//! known.

use crate::support::TestServer;
use ::testkit::{RedisOptions, Throwaway};
use reqwest::StatusCode;

use super::chart_pages::ChartPages;
use testkit::eventually;

#[tokio::test]
async fn a_released_lock_keeps_its_page_until_the_next_grant() {
    // Held, released with a rejected write after that, acquired again. Fails on a 404, on a
    // page with an unlock for a free lock, and on a history page for a held lock.
    let pages = ChartPages::start().await;
    let name = "tenant_1:close";
    let path = format!("/locks/builtin/{name}");
    let (lease, stale) = pages.acquire(name, "worker-3").await;
    pages.page_with(&path, &["holds it, token"]).await;
    pages.release(&lease).await;
    pages.refuse(name, stale, "ledger-db").await;
    let texts = [
        "Not held: ",
        "free since ",
        "last held by worker-3",
        "<dt>last held by</dt><dd><bdi class=\"long\">worker-3</bdi>",
        "<dt>held by</dt><dd>no holder</dd>",
        "id=\"ownership\"",
        "class=\"zombie\"",
        "id=\"hold-time\"",
        "Recent events",
        "rejected by ledger-db",
    ];
    let html = pages.page_with(&path, &texts).await;
    for never in ["Unlock…", "data-unlock", "Time left", "No such lock", " style="] {
        assert!(!html.contains(never), "{never} in {html}");
    }
    pages.acquire(name, "worker-7").await;
    let html = pages
        .page_with(&path, &["<bdi>worker-7</bdi>", "Time left", "Unlock…"])
        .await;
    assert!(!html.contains("Not held: "), "{html}");
}

#[tokio::test]
async fn unread_rejections_and_tokens_are_unknown() {
    // Of a released lock whose history can still be read. A newer token than that of history may have been granted.
    let pages = ChartPages::start().await;
    let (lease, stale) = pages.acquire("tenant_1:close", "worker-3").await;
    let path = "/locks/builtin/tenant_1:close";
    pages.page_with(path, &["holds it, token"]).await;
    pages.release(&lease).await;
    pages.refuse("tenant_1:close", stale, "ledger-db").await;
    let token = format!("<dt>last fencing token</dt><dd>{stale}");
    let html = pages.page_with(path, &["rejected by ledger-db", &token]).await;
    assert!(!html.contains("rejected writes are unknown"), "{html}");
    pages.break_leases("fencing_rejections").await;
    pages.page_with(path, &["rejected writes are unknown"]).await;
    pages.break_leases("resource_tokens").await;
    let unknown = "<dt>last fencing token</dt><dd><span class=\"none\">unknown";
    pages.page_with(path, &[unknown]).await;
}

#[tokio::test]
async fn unknown_and_forbidden_lock_names_are_both_404() {
    // Never used; used by another tenant; known by a refused write alone; no such backend.
    let pages = ChartPages::start().await;
    let (lease, _) = pages.acquire("tenant_1:close", "worker-3").await;
    pages.release(&lease).await;
    pages.refuse("tenant_1:reported", 4, "ledger-db").await;
    pages
        .page_with("/locks/builtin/tenant_1:close", &["Not held: "])
        .await;
    let texts = [
        "its last holder is older than the retention",
        "history does not go back that far",
    ];
    pages.page_with("/locks/builtin/tenant_1:reported", &texts).await;
    let other = pages.viewer_of("tenant_2").await;
    for (token, path) in [
        (None, "/locks/builtin/tenant_1:never"),
        (None, "/locks/nowhere/tenant_1:close"),
        (Some(&other), "/locks/builtin/tenant_1:close"),
        (Some(&other), "/locks/builtin/tenant_1:reported"),
    ] {
        let (status, html) = match token {
            Some(token) => pages.page_as(token, path).await,
            None => pages.page(path).await,
        };
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
        assert!(
            html.contains("No such lock") && html.contains("href=\"/backends\""),
            "{html}"
        );
        assert!(!html.contains("worker-3"), "{html}");
    }
}

#[tokio::test]
async fn a_lock_of_a_backend_that_is_down_is_unknown_and_never_free() {
    // A Redis lock is acquired and released while observed, then Redis ends. Fails if the page
    // shows it as free after an old reading.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let console = TestServer::builder()
        .config(&format!(
            "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"lock:*\"]\n",
            redis.url()
        ))
        .operator()
        .start()
        .await;
    console.ready().await;
    let set = async |command: &[&str]| {
        let client = redis::Client::open(redis.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut request = redis::cmd(command[0]);
        for word in &command[1..] {
            request.arg(word);
        }
        request.query_async::<()>(&mut connection).await.unwrap();
    };
    set(&["SET", "lock:close", "worker-3", "PX", "600000"]).await;
    let path = "/locks/cache/lock:close";
    let tells = async |what: &str| {
        eventually(what, async || {
            let answer = console.get(path).await;
            answer.status() == 200 && answer.text().await.unwrap().contains(what)
        })
        .await;
    };
    tells("Time left").await;
    set(&["DEL", "lock:close"]).await;
    tells("Not held: ").await;
    tells("free since ").await;
    drop(redis);
    tells("free or held: unknown").await;
    let html = console.get(path).await.text().await.unwrap();
    assert!(
        !html.contains("Not held: ") && !html.contains("<dd>no holder"),
        "{html}"
    );
    assert!(html.contains("<small>released at "), "its past stays: {html}");
}

#[tokio::test]
async fn a_lock_of_a_backend_never_read_is_unknown() {
    // Nothing listens at the address. Fails on a page without the lock, and on a 404, which programs take for free.
    let console = TestServer::builder()
        .config(
            "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://127.0.0.1:1\"]\npatterns = [\"lock:*\"]\n",
        )
        .operator()
        .start()
        .await;
    let path = "/locks/cache/lock:close";
    eventually("the backend is down", async || {
        let page = console.get(path).await.text().await.unwrap();
        page.contains("it is unknown whether lock:close is held on cache: the backend is down")
    })
    .await;
    let answer = console.get(path).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let html = answer.text().await.unwrap();
    assert!(
        html.contains("Free or held: unknown") && !html.contains("No such lock"),
        "{html}"
    );
    let answer = console.get("/v1/inventory/cache/lock:close").await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let problem: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "backend_stale", "{problem}");
}
