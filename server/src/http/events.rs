//! `/v1/events`: one stream of hints per tab. The page refetches what it shows; the stream carries no rows.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::Event;
use domain::access::Visible;
use domain::backend::BackendStatus;
use futures::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::current_user::ApiUser;
use super::state::AppState;
use inventory::{BackendSummary, Summary};

/// At most two hints a second, and at least one every five seconds so that a cut line shows.
const GAP: Duration = Duration::from_millis(500);
const HEARTBEAT_MS: i64 = 5_000;

/// Data of `hello` and `revision`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hint {
    /// Of the locks that the caller may see: changes outside of the caller's scope do not raise it.
    revision: u64,
    /// Rows that appeared, went or changed what they say since the hint before. With a scope: a lower bound of their number.
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
    poll_interval_ms: i64,
}

/// Hints that something changed: `hello` at once, then `revision`. `id` is the revision.
#[utoipa::path(
    get, path = "/v1/events", tag = "inventory",
    responses((status = 200, body = Hint, content_type = "text/event-stream"))
)]
pub(in crate::http) async fn stream(
    State(state): State<AppState>,
    user: ApiUser,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let woken = state.inventory.subscribe();
    let start = Position {
        state,
        visible: Visible::to(&user.who.grants),
        woken,
        changes: 0,
        revision: 0,
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
    revision: u64,
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
        }
        self.woken.mark_unchanged();
        let summary = self
            .state
            .inventory
            .summary(&self.visible, self.state.clock.now());
        let hint = self.hint(&summary);
        self.greeted = true;
        Event::default()
            .event(name)
            .id(hint.revision.to_string())
            .json_data(hint)
            .ok()
    }

    /// Waits until something visible changed, until the status of a backend changed, or until the next heartbeat.
    async fn wait(&mut self) {
        let began = self.state.clock.tick();
        tokio::time::sleep(GAP).await;
        while !self.is_changed() && self.state.clock.tick().since(began) < HEARTBEAT_MS {
            self.pause().await;
        }
    }

    fn is_changed(&self) -> bool {
        let (inventory, now) = (&self.state.inventory, self.state.clock.now());
        inventory.revision_of(&self.visible, now) != self.revision
            || inventory.statuses(&self.visible, now) != self.statuses
    }

    /// Up to [`GAP`]. A change ends it early for a caller who may see all of them; for others the moment of an event
    /// would show what happens outside of their scope.
    async fn pause(&mut self) {
        if self.visible.is_everything() {
            let _woken = tokio::time::timeout(GAP, self.woken.changed()).await;
        } else {
            tokio::time::sleep(GAP).await;
        }
    }

    fn hint(&mut self, summary: &Summary) -> Hint {
        let backends = summary.backends.iter();
        self.statuses = backends.clone().map(|backend| backend.status).collect();
        self.revision = summary.revision;
        let before = std::mem::replace(&mut self.changes, summary.changes);
        Hint {
            revision: summary.revision,
            changes: if self.greeted {
                summary.changes.saturating_sub(before)
            } else {
                0
            },
            held_total: summary.held_total,
            attention_total: summary.attention_total,
            alerts_overdue: self.state.auth.evaluation.is_overdue(),
            backends: backends.map(backend_hint).collect(),
        }
    }
}

fn backend_hint(backend: &BackendSummary) -> BackendHint {
    BackendHint {
        name: backend.name.to_string(),
        status: backend.status.as_str(),
        age_ms: backend.age_ms,
        poll_interval_ms: backend.poll_interval_ms,
    }
}
