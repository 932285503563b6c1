//! An HTTP service that compares `X-Fencing-Token`.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::put as put_route;

use crate::client::client_and_server::aside;

#[derive(Default)]
pub(in crate::client) struct Document {
    pub(in crate::client) text: String,
    /// Of the last write that was accepted.
    fence: u64,
}

pub(in crate::client) async fn write(
    State(document): State<Arc<Mutex<Document>>>,
    headers: HeaderMap,
    text: String,
) -> StatusCode {
    let token = headers
        .get("x-fencing-token")
        .and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    let Some(token) = token else {
        return StatusCode::PRECONDITION_REQUIRED;
    };
    // Compared and written under one lock.
    let mut document = document.lock().unwrap_or_else(PoisonError::into_inner);
    if token < document.fence {
        return StatusCode::PRECONDITION_FAILED;
    }
    document.text = text;
    document.fence = token;
    StatusCode::NO_CONTENT
}

/// The negative control: the last writer wins.
pub(in crate::client) async fn write_unfenced(
    State(document): State<Arc<Mutex<Document>>>,
    text: String,
) -> StatusCode {
    document.lock().unwrap().text = text;
    StatusCode::NO_CONTENT
}

#[tokio::test]
async fn an_http_service_rejects_a_stale_token() {
    // 1, 1 again, 2, then the late 1: 412; without a token: 428. The text is the second holder's.
    let document = Arc::<Mutex<Document>>::default();
    let app = Router::new()
        .route("/fenced", put_route(write))
        .route("/open", put_route(write_unfenced))
        .with_state(document.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let server = aside(async move { axum::serve(listener, app).await.unwrap() });
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::new();
    for (token, text, status) in [
        (Some("1"), "one", 204),
        (Some("1"), "one again", 204),
        (Some("2"), "two", 204),
        (Some("1"), "late", 412),
        (None, "nobody", 428),
        (Some("two"), "odd", 428),
    ] {
        let mut request = http.put(format!("{base}/fenced")).body(text);
        if let Some(token) = token {
            request = request.header("X-Fencing-Token", token);
        }
        assert_eq!(request.send().await.unwrap().status(), status, "{text}");
    }
    assert_eq!(document.lock().unwrap().text, "two");
    http.put(format!("{base}/open"))
        .body("late")
        .send()
        .await
        .unwrap();
    assert_eq!(
        document.lock().unwrap().text,
        "late",
        "without the comparison the late write wins"
    );
    server.abort();
}
