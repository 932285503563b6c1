//! The page of a lock that nobody holds: its past stays, and it is never told to be free where that is not known.

use leasehold::throwaway::{RedisOptions, Throwaway};
use reqwest::StatusCode;

use super::stage::Stage;
use crate::support::console::Console;
use crate::support::eventually::eventually;

#[tokio::test]
async fn a_released_lock_keeps_its_page_until_somebody_takes_it() {
    // Held, given back with a write refused after that, taken again. Would catch the 404 of before, a past page that offers an
    // unlock, and one that stays when somebody holds the lock.
    let stage = Stage::start().await;
    let name = "tenant_1:close";
    let path = format!("/locks/builtin/{name}");
    let (lease, stale) = stage.acquire(name, "worker-3").await;
    stage.page_telling(&path, &["holds it, token"]).await;
    stage.release(&lease).await;
    stage.refuse(name, stale, "ledger-db").await;
    let told = [
        "Nobody holds it: ",
        "free since ",
        "last held by worker-3",
        "<dt>last held by</dt><dd><bdi class=\"long\">worker-3</bdi>",
        "<dt>held by</dt><dd>nobody</dd>",
        "id=\"ownership\"",
        "class=\"zombie\"",
        "id=\"hold-time\"",
        "What we saw happen",
        "refused by ledger-db",
    ];
    let html = stage.page_telling(&path, &told).await;
    for never in [
        "Unlock…",
        "data-unlock",
        "Lease runway",
        "No such lock",
        " style=",
    ] {
        assert!(!html.contains(never), "{never} in {html}");
    }
    stage.acquire(name, "worker-7").await;
    let html = stage
        .page_telling(&path, &["<bdi>worker-7</bdi>", "Lease runway", "Unlock…"])
        .await;
    assert!(!html.contains("Nobody holds it"), "{html}");
}

#[tokio::test]
async fn a_name_that_nothing_knows_is_an_honest_404_and_so_is_one_that_may_not_be_seen() {
    // Never used; used by another tenant; known by a refused write alone; no such backend.
    let stage = Stage::start().await;
    let (lease, _) = stage.acquire("tenant_1:close", "worker-3").await;
    stage.release(&lease).await;
    stage.refuse("tenant_1:reported", 4, "ledger-db").await;
    stage
        .page_telling("/locks/builtin/tenant_1:close", &["Nobody holds it"])
        .await;
    let told = [
        "who held it last is not kept any more",
        "history does not go back that far",
    ];
    stage
        .page_telling("/locks/builtin/tenant_1:reported", &told)
        .await;
    let other = stage.viewer_of("tenant_2").await;
    for (token, path) in [
        (None, "/locks/builtin/tenant_1:never"),
        (None, "/locks/nowhere/tenant_1:close"),
        (Some(&other), "/locks/builtin/tenant_1:close"),
        (Some(&other), "/locks/builtin/tenant_1:reported"),
    ] {
        let (status, html) = match token {
            Some(token) => stage.page_as(token, path).await,
            None => stage.page(path).await,
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
    // A Redis lock comes and goes before our eyes, then Redis ends. Would catch a page that calls it free on an old look.
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    let console = Console::start(&format!(
        "[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"{}\"]\npatterns = [\"lock:*\"]\n",
        redis.url()
    ))
    .await;
    console.ready().await;
    let set = async |command: &[&str]| {
        let client = redis::Client::open(redis.url()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let mut asked = redis::cmd(command[0]);
        for word in &command[1..] {
            asked.arg(word);
        }
        asked.query_async::<()>(&mut connection).await.unwrap();
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
    tells("Lease runway").await;
    set(&["DEL", "lock:close"]).await;
    tells("Nobody holds it: ").await;
    tells("free since ").await;
    drop(redis);
    tells("whether it is free cannot be told now").await;
    let html = console.get(path).await.text().await.unwrap();
    assert!(
        !html.contains("Nobody holds it") && !html.contains("<dd>nobody"),
        "{html}"
    );
    assert!(html.contains("<small>released at "), "its past stays: {html}");
}
