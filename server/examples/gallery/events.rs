//! The stream of hints, and how it can fail.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures::stream;

use crate::Shared;
use crate::canned::{BEAT_MS, Canned};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    On,
    /// Each event says that the alert rules are overdue.
    Overdue,
    /// Streams end, and new ones are refused.
    Off,
    /// Streams stay open and send nothing more: a half-open connection.
    Silent,
}

impl Stream {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "on" => Some(Self::On),
            "overdue" => Some(Self::Overdue),
            "off" => Some(Self::Off),
            "silent" => Some(Self::Silent),
            _ => None,
        }
    }
}

pub(crate) async fn stream(State(canned): State<Shared>) -> Response {
    if canned.streaming() == Stream::Off {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    // The last beat that was sent, and the number of changes until then.
    let start = (canned, None, None);
    let events = stream::unfold(start, |(canned, last_sent, mut changes)| async move {
        let beat = next_beat(&canned, last_sent).await?;
        let name = if last_sent.is_none() { "hello" } else { "revision" };
        let (revision, data) = revision_event(&canned, &mut changes);
        let event = Event::default().event(name).id(revision.to_string()).data(data);
        Some((Ok::<_, Infallible>(event), (canned, Some(beat), changes)))
    });
    Sse::new(events).into_response()
}

/// Waits for the next beat; none when the stream is to end.
async fn next_beat(canned: &Canned, last_sent: Option<u64>) -> Option<u64> {
    loop {
        let beat = canned.now().beat;
        match canned.streaming() {
            Stream::Off => return None,
            Stream::On | Stream::Overdue if last_sent != Some(beat) => return Some(beat),
            Stream::On | Stream::Overdue | Stream::Silent => {}
        }
        tokio::time::sleep(Duration::from_millis(u64::try_from(BEAT_MS / 10).unwrap_or(100))).await;
    }
}

fn revision_event(canned: &Canned, last: &mut Option<u64>) -> (u64, String) {
    let summary = canned.summary();
    let backends: Vec<_> = summary
        .backends
        .iter()
        .map(|backend| {
            serde_json::json!({"name": backend.name, "status": backend.status, "ageMs": backend.age_ms, "pollIntervalMs": backend.poll_interval_ms})
        })
        .collect();
    let before = last.replace(summary.changes);
    let changes = before.map_or(0, |before| summary.changes.saturating_sub(before));
    let hint = serde_json::json!({
        "revision": summary.revision, "changes": changes, "heldTotal": summary.held_total,
        "attentionTotal": summary.attention_total, "backends": backends,
        "alertsOverdue": canned.streaming() == Stream::Overdue
    });
    (summary.revision, hint.to_string())
}
