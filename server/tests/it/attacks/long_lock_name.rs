//! A lock name of 10 KB at the end of a page: the cursor after it is one that the server accepts.

use crate::support::{TestServer, on};
use domain::access::Role;

use testkit::eventually;

#[tokio::test]
async fn paging_continues_after_a_name_of_10_kb() {
    // Names that differ in their last byte only, one on each page.
    let server = TestServer::builder().redis().start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", server.redis().port())).unwrap();
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
    let token = server.token("viewer", on(Role::Viewer, None, None)).await;
    eventually("all locks are seen", async || {
        let (_, page) = server.as_user(&token).get("/v1/inventory").await;
        page["total"].as_u64() == Some(4)
    })
    .await;
    for sort in ["resource", "-resource"] {
        let first = format!("/v1/inventory?limit=1&sort={sort}");
        let (mut path, mut found) = (first.clone(), Vec::new());
        loop {
            let (status, page) = server.as_user(&token).get(&path).await;
            assert_eq!(status, 200, "{page}");
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
