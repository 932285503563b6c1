//! Sends requests and compares each answer with the snapshot of its endpoint.

use reqwest::Method;
use serde_json::Value;

use super::{assert_snapshot, endpoint_snapshot_name, shape};
use crate::support::{TestCaller, TestServer, reply};

/// Requests of one principal.
pub(super) struct SnapshotClient<'a> {
    pub(super) server: &'a TestServer,
    pub(super) caller: &'a TestCaller,
}

impl SnapshotClient<'_> {
    /// `path` as routed, with its parameters in braces; `actual` as sent. Returns the body.
    pub(super) async fn send(&self, method: Method, path: &str, actual: &str, body: Value) -> Value {
        let name = endpoint_snapshot_name(method.as_str(), path);
        let (status, answer) = self.request(method.clone(), actual, &body).await;
        assert!(
            (200..300).contains(&status),
            "{method} {actual}: {status} {answer}"
        );
        assert_snapshot(&name, &text(&format!("{method} {path}"), status, &answer));
        answer
    }

    /// A path without parameters.
    pub(super) async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, path, Value::Null).await
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Value {
        self.send(Method::POST, path, path, body).await
    }

    /// An answer that is refused with this code.
    pub(super) async fn problem(&self, code: &str, method: Method, path: &str, body: Value) {
        let (status, answer) = self.request(method.clone(), path, &body).await;
        assert_eq!(answer["code"], code, "{method} {path}: {status} {answer}");
        let name = format!("problem-{}", code.replace('_', "-"));
        assert_snapshot(&name, &text(code, status, &answer));
    }

    async fn request(&self, method: Method, path: &str, body: &Value) -> (u16, Value) {
        let request = self.server.as_user(self.caller).request(method, path);
        match body {
            Value::Null => reply(request).await,
            body => reply(request.json(body)).await,
        }
    }
}

fn text(title: &str, status: u16, body: &Value) -> String {
    format!("{title}\n{status}\n{}", shape(body))
}
