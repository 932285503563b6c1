//! The zombie: a holder that is stopped between its decision to write and the write, past the end of its lease, while
//! the next holder writes. Real processes, a real SIGSTOP, and a resource with and without the comparison.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::put;
use rustix::process::{Signal, kill_process, kill_process_group};
use serde_json::{Value, json};

use super::client_and_server::{ClientAndServer, aside};
use super::patterns::{Document, write, write_unfenced};
use testkit::eventually;

/// The document, guarded in three ways, or not at all.
#[derive(Clone)]
struct Resource {
    document: Arc<Mutex<Document>>,
    leasehold: String,
    /// With the resource's own token.
    http: reqwest::Client,
}

impl Resource {
    async fn post(&self, path: &str, headers: &HeaderMap, more: Value) -> Value {
        let token: u64 = headers["x-fencing-token"].to_str().unwrap().parse().unwrap();
        let mut body = json!({"resource": "report", "fencingToken": token, "source": "report-service"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let request = self.http.post(format!("{}{path}", self.leasehold)).json(&body);
        request.send().await.unwrap().json().await.unwrap_or_default()
    }
}

/// Compares tokens itself, and reports each rejected write.
async fn compares(State(resource): State<Resource>, headers: HeaderMap, text: String) -> StatusCode {
    let status = write(State(resource.document.clone()), headers.clone(), text).await;
    if status == StatusCode::PRECONDITION_FAILED {
        resource
            .post("/v1/fencing/rejections", &headers, json!({"highestToken": 2}))
            .await;
    }
    status
}

/// Stores no token: validates each one with the lease service.
async fn asks(State(resource): State<Resource>, headers: HeaderMap, text: String) -> StatusCode {
    if resource.post("/v1/fencing/check", &headers, json!({})).await["accepted"] != true {
        return StatusCode::PRECONDITION_FAILED;
    }
    write_unfenced(State(resource.document.clone()), text).await
}

async fn believes(State(resource): State<Resource>, text: String) -> StatusCode {
    write_unfenced(State(resource.document.clone()), text).await
}

/// The answer to the late write, and the final text of the document.
async fn late_write(running: &ClientAndServer, way: &str) -> (String, String) {
    let resource = Resource {
        document: Arc::default(),
        leasehold: running.direct(),
        http: running.http().clone(),
    };
    let app = Router::new()
        .route("/compares", put(compares))
        .route("/asks", put(asks))
        .route("/believes", put(believes))
        .with_state(resource.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/{way}", listener.local_addr().unwrap());
    let server = aside(async move { axum::serve(listener, app).await.unwrap() });
    let writes = |text: &str| {
        format!(
            "curl -sS -o out -w '%{{http_code}}\n' -X PUT {url} -H \"X-Fencing-Token: $LEASEHOLD_FENCING_TOKEN\" -d '{text}' >answer"
        )
    };
    let flags = ["--resource", "report", "--ttl", "2s"];

    // It holds the lock, has decided to write, and is stopped, as by a paused machine: with all that watches it.
    let script = format!(
        "echo $$ >pid; until [ -e go ]; do sleep 0.02; done; {}; sleep 60",
        writes("the zombie")
    );
    let mut zombie = running.run(&flags, &script);
    let (command, watcher) = (zombie.command().await, zombie.watcher().await);
    zombie.send(Signal::STOP);
    kill_process(watcher, Signal::STOP).unwrap();
    kill_process_group(command, Signal::STOP).unwrap();
    std::fs::write(zombie.file("go"), "").unwrap();
    eventually("its lease ran out", || running.is_free("report")).await;

    let mut next = running.run(&flags, &writes("the next holder"));
    assert_eq!(next.ended().await.0, 0);
    assert_eq!(next.read("answer"), "204\n");
    assert_eq!(resource.document.lock().unwrap().text, "the next holder");

    // The late writer continues from where it was stopped, before the watcher can end it.
    kill_process_group(command, Signal::CONT).unwrap();
    zombie.wrote("answer").await;
    kill_process(watcher, Signal::CONT).unwrap();
    zombie.send(Signal::CONT);
    assert_eq!(zombie.ended().await.0, 76);
    server.abort();
    let text = resource.document.lock().unwrap().text.clone();
    (zombie.read("answer").trim().to_owned(), text)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zombie_write_is_rejected_and_recorded() {
    // The resource compares tokens itself and reports the rejection; the next holder's text stays.
    let server = ClientAndServer::start().await;
    let (answer, text) = late_write(&server, "compares").await;
    assert_eq!((answer.as_str(), text.as_str()), ("412", "the next holder"));
    let ledger = server.ledger().await;
    assert_eq!(
        ledger,
        [(1, Some(2), "report-service".to_owned(), "reported".to_owned())]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_resource_that_checks_tokens_rejects_the_zombie() {
    // The resource stores no token: the lease service compares it and records the rejection itself.
    let server = ClientAndServer::start().await;
    let (answer, text) = late_write(&server, "asks").await;
    assert_eq!((answer.as_str(), text.as_str()), ("412", "the next holder"));
    let ledger = server.ledger().await;
    assert_eq!(
        ledger,
        [(1, Some(2), "report-service".to_owned(), "stale".to_owned())]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_fencing_the_zombie_overwrites_the_next_holder() {
    // The negative control: the same pause, the same lock, no comparison. No lock service can prevent this.
    let server = ClientAndServer::start().await;
    let (answer, text) = late_write(&server, "believes").await;
    assert_eq!((answer.as_str(), text.as_str()), ("204", "the zombie"));
    assert!(server.ledger().await.is_empty());
}
