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
    /// Streams end, and new ones are refused.
    Off,
    /// Streams stay open and say nothing more: a half-dead connection.
    Silent,
}

impl Stream {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "on" => Some(Self::On),
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
    let events = stream::unfold((canned, None), |(canned, told)| async move {
        let beat = next_beat(&canned, told).await?;
        let name = if told.is_none() { "hello" } else { "revision" };
        let event = Event::default()
            .event(name)
            .id(beat.to_string())
            .data(pulse(&canned, beat, told));
        Some((Ok::<_, Infallible>(event), (canned, Some(beat))))
    });
    Sse::new(events).into_response()
}

/// Waits until there is something to tell; none when the stream is to end.
async fn next_beat(canned: &Canned, told: Option<u64>) -> Option<u64> {
    loop {
        let beat = canned.now().beat;
        match canned.streaming() {
            Stream::Off => return None,
            Stream::On if told != Some(beat) => return Some(beat),
            Stream::On | Stream::Silent => {}
        }
        tokio::time::sleep(Duration::from_millis(u64::try_from(BEAT_MS / 10).unwrap_or(100))).await;
    }
}

fn pulse(canned: &Canned, beat: u64, told: Option<u64>) -> String {
    let rows = canned.rows();
    let backends: Vec<_> = canned
        .views(&rows)
        .into_iter()
        .map(|view| {
            serde_json::json!({"name": view.name, "status": view.status, "ageMs": view.age_ms, "pollMs": view.poll_ms})
        })
        .collect();
    let attention = rows.iter().filter(|lock| lock.state.needs_attention()).count();
    let changes = told.map_or(0, |told| beat - told);
    serde_json::json!({"revision": beat, "changes": changes, "heldTotal": rows.len(), "attentionTotal": attention, "backends": backends})
        .to_string()
}
