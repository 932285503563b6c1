//! Many requests with tokens that were never issued: each is a miss in the server's memory.

use crate::support::{TestServer, token};
use domain::access::Role;
use futures::future::join_all;
use reqwest::StatusCode;
use runtime::clock::Stopwatch;

#[tokio::test]
async fn unknown_tokens_share_few_reads_of_the_store() {
    // 400 at the same time and 100 one after the other; then a known token works.
    let console = TestServer::builder().operator().start().await;
    let watch = Stopwatch::start();
    let client = reqwest::Client::new();
    let ask = async |secret: String| {
        let request = client.get(console.url("/v1/backends")).bearer_auth(secret);
        request.send().await.unwrap().status()
    };
    let statuses = join_all((0..400).map(|number| ask(format!("lht_parallel-{number}")))).await;
    assert!(statuses.iter().all(|status| *status == StatusCode::UNAUTHORIZED));
    for number in 0..100 {
        let status = ask(format!("lht_serial-{number}")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let known = token(&console.serving, Role::Viewer).await;
    assert_eq!(ask(known.expose().to_owned()).await, StatusCode::OK);
    // One in 20 ms at most, however many ask.
    let reads = console.serving.identity().rereads();
    let most = watch.seconds() / 0.020 + 2.0;
    assert!(reads as f64 <= most && reads < 500, "{reads} reads, {most}");
}
