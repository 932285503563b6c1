//! A lock name of 10 KB at the end of a page: the cursor after it is one that the server accepts.

use domain::access::Role;
use reqwest::StatusCode;

use crate::people::stage::{Stage, get, on};
use crate::support::eventually::eventually;

#[tokio::test]
async fn a_name_of_10_kb_does_not_end_paging() {
    // Names that differ in their last byte only, one on each page.
    let stage = Stage::start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", stage.redis.port())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    let long = "x".repeat(10_000);
    let names = [
        "lock:a".to_owned(),
        format!("lock:{long}1"),
        format!("lock:{long}2"),
        "lock:z".to_owned(),
    ];
    for name in &names {
        let mut set = redis::cmd("SET");
        let () = set.arg(name).arg("worker").query_async(&mut redis).await.unwrap();
    }
    let token = stage.token("viewer", on(Role::Viewer, None, None)).await;
    eventually("all locks are seen", async || {
        let (_, page) = get(&stage, &token, "/v1/inventory").await;
        page["total"].as_u64() == Some(4)
    })
    .await;
    for sort in ["resource", "-resource"] {
        let first = format!("/v1/inventory?limit=1&sort={sort}");
        let (mut path, mut found) = (first.clone(), Vec::new());
        loop {
            let (status, page) = get(&stage, &token, &path).await;
            assert_eq!(status, StatusCode::OK, "{page}");
            found.push(page["locks"][0]["resource"].as_str().unwrap().to_owned());
            let Some(cursor) = page["nextCursor"].as_str() else {
                break;
            };
            path = format!("{first}&cursor={cursor}");
        }
        if sort == "-resource" {
            found.reverse();
        }
        assert_eq!(found, names, "{sort}");
    }
}
