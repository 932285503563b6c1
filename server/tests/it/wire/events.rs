//! Server-sent events: hints of the console, events of one lease.

use reqwest::{Method, Response};

use super::assert_snapshot;
use crate::support::TestServer;

/// Events of a stream until one of this name.
async fn events_until(mut stream: Response, name: &str) -> String {
    assert_eq!(stream.status(), 200);
    let (mut text, last) = (String::new(), format!("event: {name}\n"));
    while !(text.contains(&last) && text.ends_with("\n\n")) {
        let part = stream.chunk().await.unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&part).unwrap());
    }
    let is_comment = |event: &&str| event.starts_with(':');
    let events = text.split("\n\n").filter(|event| !is_comment(event));
    events.map(pretty).collect::<Vec<_>>().join("\n\n")
}

/// The data of an event as indented JSON.
fn pretty(event: &str) -> String {
    let line = |line: &str| match line.strip_prefix("data: ") {
        Some(data) => {
            let value: serde_json::Value = serde_json::from_str(data).unwrap();
            format!("data: {}", super::shape(&value))
        }
        None => line.to_owned(),
    };
    event.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn events_of_the_console_and_of_a_lease() {
    let server = TestServer::builder().operator().start().await;
    server.ready().await;
    let hello = events_until(server.get("/v1/events").await, "hello").await;
    assert_snapshot("events-hello", &hello);
    let operator = server.operator().await;
    let held = server.hold(&operator, "jobs/a").await;
    let path = format!("/v1/locks/{}/events", held.lease);
    let stream = server.as_user(&operator).send(Method::GET, &path).await;
    let id = server.begun(&operator, &held).await;
    let done = server.confirm(&operator, &id, "jobs/a").await;
    assert_eq!(done.0, 200, "{}", done.1);
    assert_snapshot("events-of-a-lease", &events_until(stream, "revoked").await);
}
