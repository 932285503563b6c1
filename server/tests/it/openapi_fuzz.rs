//! Valid, invalid and hostile requests to every path of the API, generated from its own OpenAPI document.
//!
//! No answer is 5xx; each 4xx is a problem document with a code and the id of its request. The seed is fixed, so that a failure
//! is reproducible; `LEASEHOLD_TEST_SEED` sets another.

mod generate;

use crate::support::TestServer;
use reqwest::header;
use serde_json::{Value, json};

use crate::support::rng::Dice;
use generate::{GeneratedRequest, Generator, Operation};

const SEED: u64 = 20_260_417;
const REQUESTS: usize = 3_000;

fn seed() -> u64 {
    match std::env::var_os("LEASEHOLD_TEST_SEED") {
        Some(_) => crate::support::rng::seed(),
        None => SEED,
    }
}

/// The fault of an answer, if any.
async fn wrong(response: reqwest::Response) -> Option<String> {
    let status = response.status().as_u16();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let kind = header(header::CONTENT_TYPE).unwrap_or_default().to_owned();
    let id = header(header::HeaderName::from_static("x-request-id"))
        .unwrap_or_default()
        .to_owned();
    if status < 400 || kind.starts_with("text/event-stream") {
        // A stream has no end.
        return None;
    }
    let text = response.text().await.unwrap_or_default();
    if status >= 500 {
        return Some(format!("{status}: {text}"));
    }
    let problem: Value = serde_json::from_str(&text).unwrap_or_default();
    let has_text = |name: &str| problem[name].as_str().is_some_and(|text| !text.is_empty());
    let right = kind == "application/problem+json"
        && problem["status"] == status
        && has_text("code")
        && has_text("detail")
        && problem["requestId"] == *id
        && !id.is_empty();
    (!right).then(|| format!("{status} {kind}: {text}"))
}

fn send(http: &reqwest::Client, base: &str, generated: &GeneratedRequest) -> reqwest::RequestBuilder {
    let method = reqwest::Method::from_bytes(generated.method.as_bytes()).unwrap();
    let mut request = http.request(method, format!("{base}{}", generated.target));
    for (name, value) in &generated.headers {
        request = request.header(*name, value.as_slice());
    }
    match &generated.body {
        Some(body) => request.body(body.clone()),
        None => request,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_of_the_openapi_fuzzer_breaks_the_server() {
    // Thousands of requests over all operations, right ones among them; then the server still serves.
    let console = TestServer::builder().operator().start().await;
    console.ready().await;
    let document = console.json("/v1/openapi.json").await;
    let http = console.client.clone();
    let body = json!({"resource": "kept", "ownerId": "o", "ttlSeconds": 3_600});
    let kept = http
        .post(console.url("/v1/locks/acquire"))
        .json(&body)
        .send()
        .await
        .unwrap();
    let lease: Value = kept.json().await.unwrap();
    let operations = Operation::all(&document);
    let lease_paths = operations
        .iter()
        .filter(|it| it.path.contains("/locks") || it.path.contains("/fencing"))
        .count();
    assert!(lease_paths >= 8 && operations.len() >= 14, "{operations:#?}");
    let seed = seed();
    println!("seed {seed}");
    let mut generator = Generator::new(Dice::new(seed), lease["leaseId"].as_str().unwrap().to_owned());
    let (mut failures, mut statuses) = (Vec::new(), std::collections::BTreeMap::new());
    let mut unsent = 0;
    for number in 0..REQUESTS {
        let generated = generator.request(&operations[number % operations.len()]);
        match send(&http, &console.url(""), &generated).send().await {
            Ok(response) => {
                *statuses.entry(response.status().as_u16()).or_insert(0) += 1;
                failures.extend(wrong(response).await.map(|why| format!("{why}\n  {generated:?}")));
            }
            // Longer than our client can write an address: the request was not sent.
            Err(error) if error.is_builder() => unsent += 1,
            Err(error) => failures.push(format!("no answer: {error:?}\n  {generated:?}")),
        }
    }
    println!(
        "{REQUESTS} requests over {} operations: {statuses:?}",
        operations.len()
    );
    let shown: Vec<_> = failures
        .iter()
        .take(10)
        .map(|text| text.chars().take(600).collect::<String>())
        .collect();
    assert!(
        failures.is_empty(),
        "{} of {REQUESTS}:\n{}",
        failures.len(),
        shown.join("\n")
    );
    assert!(
        unsent * 100 < REQUESTS,
        "{unsent} of {REQUESTS} were not even sent"
    );
    for status in [200, 400, 404, 415] {
        assert!(statuses.contains_key(&status), "no {status} at all: {statuses:?}");
    }
    let page = console.json("/v1/locks?limit=1").await;
    assert!(page["locks"].is_array(), "{page}");
}
