//! A viewer sends many searches at once, each of which reads every name.

use crate::support::{TestServer, on};
use domain::access::Role;
use domain::tick::Tick;
use reqwest::{Client, header};
use runtime::clock::Clock;
use serde_json::Value;

use testkit::eventually;

const LOCKS: usize = 5_000;
/// Longer than a search waits for a permit, in milliseconds.
const FLOOD_MS: i64 = 6_000;
const SEARCH: &str = "/v1/inventory?limit=1&q=nothing-has-this-name";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn searches_beyond_the_limit_answer_503() {
    // More searches than the cores can do in the time that a search waits.
    let server = TestServer::builder().redis().start().await;
    let redis = redis::Client::open(format!("redis://127.0.0.1:{}", server.redis().port())).unwrap();
    let mut redis = redis.get_multiplexed_async_connection().await.unwrap();
    // Long names with many partial matches of the search text.
    let fill = "for i = 1, tonumber(ARGV[1]) do redis.call('SET', string.rep('nothing-has-', 80) .. i, 'worker') end";
    let mut eval = redis::cmd("EVAL");
    let () = eval
        .arg(fill)
        .arg(0)
        .arg(LOCKS)
        .query_async(&mut redis)
        .await
        .unwrap();
    let token = server.token("viewer", on(Role::Viewer, None, None)).await;
    eventually("all locks are seen", async || {
        let (_, page) = server.as_user(&token).get("/v1/inventory?limit=1").await;
        page["total"].as_u64() == Some(LOCKS as u64)
    })
    .await;
    let clock = Clock::start();
    assert_eq!(server.as_user(&token).get(SEARCH).await.0, 200);
    let one_ms = clock.tick().since(Tick(0)).max(1);
    let cores = std::thread::available_parallelism().unwrap().get();
    let searches = FLOOD_MS / one_ms * i64::try_from(cores).unwrap();
    let http = Client::new();
    // Each another one, because equal searches share one result.
    let flood = (0..searches.min(5_000)).map(async |number| {
        let request = http
            .get(format!("{}{number}", server.url(SEARCH)))
            .bearer_auth(token.secret());
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status(), answer.headers().clone());
        if status == 503 {
            assert_eq!(headers[header::RETRY_AFTER], "1");
            let problem: Value = answer.json().await.unwrap();
            assert_eq!(problem["code"], "overloaded", "{problem}");
            let remedy = problem["remedy"].as_str().unwrap();
            assert!(remedy.contains("narrow the search"), "{problem}");
        }
        status
    });
    let (statuses, plain) = tokio::join!(
        futures::future::join_all(flood),
        server.as_user(&token).get("/v1/inventory?limit=1")
    );
    assert_eq!(plain.0, 200);
    let (done, refused) = (
        statuses.iter().filter(|status| **status == 200).count(),
        statuses.iter().filter(|status| **status == 503).count(),
    );
    assert!(done > 0 && refused > 0, "{done} done, {refused} refused");
    assert_eq!(done + refused, statuses.len());
    eventually("a search is possible again", async || {
        server.as_user(&token).get(SEARCH).await.0 == 200
    })
    .await;
}
