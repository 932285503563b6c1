//! A webhook receiver inside the demo's process, which verifies signatures and prints messages.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use secrecy::SecretString;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use runtime::tasks;
use runtime::webhook_signature::sign;

type PrintLine = dyn Fn(String) + Send + Sync;

#[derive(Clone)]
struct ReceiverState {
    secret: SecretString,
    print_line: Arc<PrintLine>,
}

pub struct Webhook {
    address: SocketAddr,
    secret: SecretString,
}

impl Webhook {
    /// Receives until `stop`; each message is printed on one line.
    ///
    /// # Errors
    /// No port is free.
    pub async fn open(
        stop: CancellationToken,
        print_line: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let secret = SecretString::from(runtime::random::id());
        let state = ReceiverState {
            secret: secret.clone(),
            print_line: Arc::new(print_line),
        };
        let router = Router::new().route("/", post(on_message)).with_state(state);
        tasks::spawn("the demo's webhook", stop, async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::warn!("the demo's webhook stopped: {error}");
            }
        });
        Ok(Self { address, secret })
    }

    pub fn url(&self) -> SecretString {
        format!("http://{}/", self.address).into()
    }

    pub fn secret(&self) -> SecretString {
        self.secret.clone()
    }
}

async fn on_message(
    State(state): State<ReceiverState>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, &'static str) {
    let header = |name| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    };
    let text = String::from_utf8_lossy(&body);
    if header("x-signature") != sign(&state.secret, header("x-timestamp"), &text) {
        return (StatusCode::FORBIDDEN, "the signature is invalid");
    }
    let message: Value = serde_json::from_str(&text).unwrap_or_default();
    (state.print_line)(message_line(&message));
    (StatusCode::OK, "received, signature valid")
}

/// `firing: LongHeld, held for 41 m`
fn message_line(message: &Value) -> String {
    let text = |value: &Value| domain::escape::visible(value.as_str().unwrap_or("?")).into_owned();
    let alerts = message["alerts"].as_array().map_or(&[][..], Vec::as_slice);
    let first = alerts.first().unwrap_or(&Value::Null);
    let more = match alerts.len() {
        0 | 1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    format!(
        "{}: {}, {}{more}",
        text(&message["status"]),
        text(&first["labels"]["alertname"]),
        text(&first["annotations"]["summary"])
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_received_message_is_logged_as_one_line() {
        // Two alerts, the first with a line break and an escape; and a message without alerts.
        let alert =
            json!({"labels": {"alertname": "LongHeld"}, "annotations": {"summary": "a\n\u{1b}[31mb"}});
        let printed = message_line(&json!({"status": "firing", "alerts": [alert, {}]}));
        assert_eq!(printed, "firing: LongHeld, a\\u{a}\\u{1b}[31mb, and 1 more");
        assert_eq!(message_line(&json!({})), "?: ?, ?");
    }
}
