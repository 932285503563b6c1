//! Texts with line ends try to add fields and events to the event streams.

use crate::support::{TestServer, bearer, token};
use std::time::Duration;

use domain::access::Role;
use futures::StreamExt as _;
use reqwest::{Client, Response};
use serde_json::{Value, json};

use testkit::eventually;

const FORGED: &str = "\n\nevent: forged\ndata: {\"forged\":true}\n\n\r\rid: 7\r\nretry: 1\r\n\r\n";

/// Everything up to these words, or to the end.
async fn read_until(answer: Response, words: &str) -> String {
    assert_eq!(answer.status(), 200);
    let (mut text, mut chunks) = (String::new(), answer.bytes_stream());
    let read = async {
        while let Some(Ok(chunk)) = chunks.next().await {
            text.push_str(&String::from_utf8_lossy(&chunk));
            if text.contains(words) {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), read).await.unwrap();
    text
}

/// Events and their data, as a browser separates them; anything else fails.
fn events(stream: &str) -> Vec<(String, Value)> {
    let lines = stream.replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    for frame in lines.split("\n\n").filter(|frame| !frame.trim().is_empty()) {
        let (mut name, mut data) = (None, None);
        for line in frame.lines() {
            match line
                .split_once(':')
                .unwrap_or_else(|| panic!("{line:?} in {stream}"))
            {
                ("event", value) => assert!(name.replace(value.trim().to_owned()).is_none(), "{frame}"),
                ("data", value) => assert!(data.replace(value.to_owned()).is_none(), "{frame}"),
                ("id", value) => assert!(value.trim().parse::<u64>().is_ok(), "{frame}"),
                ("", _) => {}
                other => panic!("{other:?} in {stream}"),
            }
        }
        let (Some(name), Some(data)) = (name, data) else {
            continue;
        };
        events.push((name, serde_json::from_str(&data).unwrap()));
    }
    events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn line_ends_in_texts_add_no_event_to_a_stream() {
    // The reason of a forced unlock reaches the stream of the lease as text; the stream of pages begins with `hello`.
    let console = TestServer::builder().operator().start().await;
    let owner = token(&console.serving, Role::Client).await;
    let operator = bearer(console.operator_token());
    let client = Client::new();
    let lease = json!({"resource": "jobs:1", "ownerId": "w", "ttlSeconds": 600});
    let acquire = client
        .post(console.url("/v1/locks/acquire"))
        .headers(bearer(owner.expose()));
    let lease: Value = acquire.json(&lease).send().await.unwrap().json().await.unwrap();
    let path = format!("/v1/locks/{}/events", lease["leaseId"].as_str().unwrap());
    let stream = client.get(console.url(&path)).headers(bearer(owner.expose()));
    let stream = stream.send().await.unwrap();
    let found = std::cell::RefCell::new(Value::Null);
    eventually("the lock is seen", async || {
        found.replace(console.json("/v1/inventory/builtin/jobs:1").await);
        found.borrow()["generation"].is_string()
    })
    .await;
    let intent = json!({
        "backend": "builtin", "resource": "jobs:1", "generation": found.borrow()["generation"],
        "reason": format!("stuck since 03:00{FORGED}its owner agrees")
    });
    let begin = client.post(console.url("/v1/unlocks")).headers(operator.clone());
    let begun: Value = begin.json(&intent).send().await.unwrap().json().await.unwrap();
    let confirm = format!(
        "/v1/unlocks/{}/confirm",
        begun["unlockId"].as_str().unwrap_or_else(|| panic!("{begun}"))
    );
    let confirm = client.post(console.url(&confirm)).headers(operator);
    let done = confirm.json(&json!({"resource": "jobs:1"})).send().await.unwrap();
    assert_eq!(done.json::<Value>().await.unwrap()["state"], "released");
    let sent = events(&read_until(stream, "auditId").await);
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(sent[0].0, "revoked");
    assert!(
        sent[0].1["reason"].as_str().unwrap().contains("forged"),
        "{sent:?}"
    );
    let hello = read_until(console.get("/v1/events").await, "\n\n").await;
    assert_eq!(events(&hello)[0].0, "hello", "{hello}");
}
