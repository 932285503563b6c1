//! A webhook receiver: a small HTTP server that stores each request and answers as configured.

use crate::support::aside;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use runtime::clock::Clock;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use testkit::eventually;

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// Milliseconds since the sink was there.
    pub(crate) at: i64,
}

impl ReceivedRequest {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// The next answer, used once.
pub(crate) enum Reply {
    Status(u16),
    With(u16, &'static str, String),
    /// With this body.
    Text(u16, String),
    /// No answer at all.
    Silence,
    /// 200, and then bytes without an end.
    Flood,
}

#[derive(Clone)]
struct Inner {
    clock: Clock,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    replies: Arc<Mutex<VecDeque<Reply>>>,
}

pub(crate) struct WebhookSink {
    /// `http://127.0.0.1:port`
    pub(crate) url: String,
    inner: Inner,
    _stop: DropGuard,
}

impl WebhookSink {
    /// Receives until it is dropped.
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let inner = Inner {
            clock: Clock::start(),
            received: Arc::default(),
            replies: Arc::default(),
        };
        let router = Router::new().fallback(receive).with_state(inner.clone());
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        aside(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                served = axum::serve(listener, router) => served.unwrap(),
            }
        });
        Self {
            url,
            inner,
            _stop: stop.drop_guard(),
        }
    }

    /// Answers so, in this order, before it answers 200 again.
    pub(crate) fn answers(&self, replies: impl IntoIterator<Item = Reply>) {
        self.inner.replies.lock().unwrap().extend(replies);
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.inner.received.lock().unwrap().clone()
    }

    /// Waits until it has received `count` requests.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<ReceivedRequest> {
        eventually(&format!("{count} messages"), async || {
            self.received().len() >= count
        })
        .await;
        self.received()
    }
}

async fn receive(State(inner): State<Inner>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    inner.received.lock().unwrap().push(ReceivedRequest {
        path: parts.uri.path().to_owned(),
        headers: parts.headers,
        body: String::from_utf8(bytes.to_vec()).unwrap(),
        at: inner.clock.tick().0,
    });
    let reply = inner.replies.lock().unwrap().pop_front();
    let status = |status| StatusCode::from_u16(status).unwrap();
    match reply {
        None => "heard".into_response(),
        Some(Reply::Status(code)) => (status(code), "not accepted").into_response(),
        Some(Reply::With(code, name, value)) => (status(code), [(name, value)]).into_response(),
        Some(Reply::Text(code, text)) => (status(code), text).into_response(),
        Some(Reply::Silence) => std::future::pending().await,
        Some(Reply::Flood) => {
            let part = || Some((Ok::<_, std::io::Error>(vec![b'x'; 65_536]), ()));
            Body::from_stream(futures::stream::unfold((), move |()| async move { part() })).into_response()
        }
    }
}
