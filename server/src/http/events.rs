//! `/v1/events`: one stream of hints per tab. The page refetches what it shows; the stream carries no rows.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::Event;
use domain::access::Visible;
use domain::backend::{BackendStatus, BackendView};
use futures::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::state::{AppState, InSight};

/// At most two hints a second, and at least one every five seconds so that a cut line shows.
const GAP: Duration = Duration::from_millis(500);
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Data of `hello` and `revision`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hint {
    revision: u64,
    /// Rows that appeared, went or changed what they say since the hint before.
    changes: u64,
    held_total: u64,
    attention_total: u64,
    /// No server has evaluated the alert rules for more than 60 s.
    alerts_overdue: bool,
    backends: Vec<BackendHint>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendHint {
    name: String,
    status: &'static str,
    age_ms: Option<i64>,
    poll_ms: i64,
}

/// Hints that something changed: `hello` at once, then `revision`. `id` is the revision.
#[utoipa::path(
    get, path = "/v1/events", tag = "inventory",
    responses((status = 200, body = Hint, content_type = "text/event-stream"))
)]
pub(super) async fn stream(
    State(state): State<AppState>,
    InSight(visible): InSight,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let woken = state.inventory.subscribe();
    let start = Position {
        state,
        visible,
        woken,
        changes: 0,
        statuses: Vec::new(),
        greeted: false,
    };
    Sse::new(stream::unfold(start, |mut at| async move {
        let event = at.next().await?;
        Some((Ok(event), at))
    }))
}

struct Position {
    state: AppState,
    visible: Visible,
    woken: watch::Receiver<u64>,
    changes: u64,
    statuses: Vec<BackendStatus>,
    greeted: bool,
}

impl Position {
    /// The next event; none when the server shuts down.
    async fn next(&mut self) -> Option<Event> {
        let name = if self.greeted { "revision" } else { "hello" };
        if self.greeted {
            let stop = self.state.stop.clone();
            tokio::select! {
                () = stop.cancelled() => return None,
                () = self.wait() => {}
            }
        } else {
            self.changes = self.state.inventory.changes();
            self.greeted = true;
        }
        self.woken.mark_unchanged();
        let hint = self.hint();
        Event::default()
            .event(name)
            .id(hint.revision.to_string())
            .json_data(hint)
            .ok()
    }

    /// Until something changed, a backend's status turned, or it is time for a heartbeat.
    async fn wait(&mut self) {
        tokio::time::sleep(GAP).await;
        let mut waited = GAP;
        while waited < HEARTBEAT {
            let turned = tokio::time::timeout(GAP, self.woken.changed()).await.is_ok();
            if turned || self.statuses != self.read_statuses() {
                return;
            }
            waited += GAP;
        }
    }

    fn read_statuses(&self) -> Vec<BackendStatus> {
        self.state.inventory.statuses(self.state.clock.now())
    }

    fn hint(&mut self) -> Hint {
        let now = self.state.clock.now();
        let views = self.state.inventory.backends_visible(&self.visible, now);
        self.statuses = views.iter().map(|view| view.status).collect();
        let changes = self.state.inventory.changes();
        let since = changes.saturating_sub(std::mem::replace(&mut self.changes, changes));
        Hint {
            revision: self.state.inventory.revision(),
            changes: since,
            held_total: views.iter().map(|view| view.locks).sum(),
            attention_total: views.iter().map(|view| view.needing_attention).sum(),
            alerts_overdue: self.state.evaluation.is_overdue(),
            backends: views.iter().map(backend_hint).collect(),
        }
    }
}

fn backend_hint(view: &BackendView) -> BackendHint {
    BackendHint {
        name: view.name.to_string(),
        status: view.status.wire(),
        age_ms: view.age_ms,
        poll_ms: view.poll_ms,
    }
}
