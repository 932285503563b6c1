//! `/v1/events`: one stream of hints per tab. The page refetches what it shows; the stream carries no rows.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::Event;
use domain::access::{Permission, Visible};
use domain::backend::BackendStatus;
use futures::stream::{self, Stream};
use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use super::current_user::ApiUser;
use super::state::{AppState, Services};
use crate::alerts::AlertSummary;
use crate::identity::Principal;
use inventory::{BackendSummary, Summary};
use runtime::change_signal::ChangeSignal;

/// At most two hints a second, and at least one every five seconds, so that a client notices a broken connection.
const GAP: Duration = Duration::from_millis(500);
const HEARTBEAT_MS: i64 = 5_000;

/// Data of `hello` and `revision`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hint {
    /// Revision of the locks that the caller may see: changes outside of the caller's scope do not raise it.
    revision: u64,
    /// Number of rows added, removed or changed since the previous hint; with a scope, a lower bound of it.
    changes: u64,
    held_total: u64,
    attention_total: u64,
    /// No server has evaluated the alert rules for more than 60 s.
    alerts_overdue: bool,
    /// Revision of the alerts, rules and silences that the caller may see.
    alerts_revision: u64,
    /// Groups with an alert that fires and is neither silenced nor acknowledged, as far as the caller may see them.
    firing_groups: u32,
    /// Counts audit entries and fencing rejections; constant for callers who may not see all of them.
    activity_revision: u64,
    /// The console is read-only.
    read_only: bool,
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
    let start = Position {
        activity: Services::activity_for(&user.who),
        woken: Wakers::new(&state),
        state,
        visible: Visible::to(&user.who.grants),
        changes: 0,
        revision: 0,
        statuses: Vec::new(),
        sent_revisions: PageRevisions::default(),
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
    woken: Wakers,
    activity: Activity,
    changes: u64,
    revision: u64,
    statuses: Vec<BackendStatus>,
    sent_revisions: PageRevisions,
    greeted: bool,
}

/// Changes that end a wait early.
struct Wakers([watch::Receiver<u64>; 4]);

impl Wakers {
    fn new(state: &Services) -> Self {
        Self([
            state.inventory.subscribe(),
            state.alerts.changes().subscribe(),
            state.auth.audit.published().subscribe(),
            state.leases.rejection_signal().subscribe(),
        ])
    }

    fn mark_unchanged(&mut self) {
        for woken in &mut self.0 {
            woken.mark_unchanged();
        }
    }

    async fn changed(&mut self) {
        let [inventory, alerts, audit, rejections] = &mut self.0;
        tokio::select! {
            _ = inventory.changed() => {}
            _ = alerts.changed() => {}
            _ = audit.changed() => {}
            _ = rejections.changed() => {}
        }
    }
}

/// Whether a caller is notified of new audit entries and rejections: only if it may see all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Activity {
    audit: bool,
    rejections: bool,
}

/// Revisions besides the inventory's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PageRevisions {
    pub(super) alerts: AlertSummary,
    pub(super) activity: u64,
}

impl Services {
    pub(super) fn activity_for(who: &Principal) -> Activity {
        Activity {
            audit: who.grants.may_everywhere(Permission::AuditRead),
            rejections: who.grants.may_everywhere(Permission::View),
        }
    }

    /// Without alerts where the store does not answer: the pages say so themselves.
    pub(super) async fn page_revisions(&self, visible: &Visible, of: Activity) -> PageRevisions {
        let count = |may: bool, signal: &ChangeSignal| if may { signal.count() } else { 0 };
        PageRevisions {
            alerts: self.alerts.summary(visible).await.unwrap_or_default(),
            activity: count(of.audit, self.auth.audit.published())
                + count(of.rejections, self.leases.rejection_signal()),
        }
    }
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
        self.sent_revisions = self.state.page_revisions(&self.visible, self.activity).await;
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
        while !self.is_changed().await && self.state.clock.tick().since(began) < HEARTBEAT_MS {
            self.pause().await;
        }
    }

    async fn is_changed(&self) -> bool {
        let revisions = self.state.page_revisions(&self.visible, self.activity).await;
        let (inventory, now) = (&self.state.inventory, self.state.clock.now());
        revisions != self.sent_revisions
            || inventory.revision_of(&self.visible, now) != self.revision
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
            alerts_revision: self.sent_revisions.alerts.revision,
            firing_groups: self.sent_revisions.alerts.firing_groups,
            activity_revision: self.sent_revisions.activity,
            read_only: self.state.directory().read_only,
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
