//! The page of one lock: its observation, a read from the backend, and its history. Many open tabs request it at once, so it is
//! computed once per revision and scope; the readers' own permissions and lease ids are added to each answer.

use std::convert::Infallible;

use app::console::ConsoleError;
use domain::backend::{BackendStatus, BackendView};
use domain::lock_detail::{EventKind, LockCharts, LockDetail, SeenEvent};
use domain::names::{BackendName, Resource, Source};
use domain::reported::Reported;

use super::{ChartSources, HISTORY_TIMEOUT, ServerConsole};
use crate::history;
use inventory::{LookUp, SEEN_MAX};

/// Longest time that a stored page is served, in milliseconds: the backend is read at most this often for it.
const LOCK_STEP_MS: i64 = 500;
/// The same for its charts.
const CHARTS_STEP_MS: i64 = 1_000;

impl ServerConsole {
    /// Without data that depends on the principal: why it may not unlock, and the ids of its own leases.
    pub(super) async fn lock_page(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
    ) -> Result<LockDetail, ConsoleError> {
        let key = key(&[backend.as_str(), source.map_or("", Source::as_str), resource]);
        // "Not held" is stored too: otherwise the waiting requests would read the history one after the other.
        let computed = async { Ok::<_, Infallible>(self.compute_lock_page(backend, source, resource).await) };
        let stamp = || self.stamp(LOCK_STEP_MS);
        let Ok(page) = self.lock_pages.get((&key, &self.visible), stamp, computed).await;
        page
    }

    pub(super) async fn lock_page_charts(
        &self,
        sources: &ChartSources,
        detail: &LockDetail,
        search: &str,
        may_audit: bool,
    ) -> LockCharts {
        let id = &detail.lock.id;
        let resource = id.resource.text();
        let audit_flag = if may_audit { "audit" } else { "" };
        let key = key(&[
            id.backend.as_str(),
            id.source.as_str(),
            &resource,
            audit_flag,
            search,
        ]);
        let computed = async {
            let viewer = (may_audit, &self.visible);
            Ok::<_, Infallible>(sources.lock(detail, search, viewer).await)
        };
        let stamp = || self.stamp(CHARTS_STEP_MS);
        let Ok(charts) = self.lock_charts.get((&key, &self.visible), stamp, computed).await;
        charts
    }

    async fn compute_lock_page(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        resource: &str,
    ) -> Result<LockDetail, ConsoleError> {
        // The same answer whether or not it is held: an invisible name reveals nothing.
        let scope = self.visible.on(backend);
        let all = Resource::candidates(resource);
        let names: Vec<Resource> = all
            .iter()
            .filter(|name| scope.covers_bytes(name.as_bytes()))
            .cloned()
            .collect();
        if names.is_empty() {
            // Also of a backend outside of the scope, whose status stays hidden.
            return Err(not_held(backend, resource, &[]));
        }
        // Two names can have the same text form, and only one may be in scope.
        let is_shared = names.len() < all.len();
        let (lock, seen) = match self
            .inventory
            .find_lock(backend, source, resource, self.clock.now())
        {
            LookUp::Found(lock, _) if !scope.covers_bytes(lock.id.resource.as_bytes()) => {
                return Err(self.not_held(backend, resource, &[]));
            }
            LookUp::Found(lock, seen) if scope.is_everything() => (*lock, seen),
            LookUp::Found(lock, seen) => (lock.limited(), seen),
            LookUp::Ambiguous(_) if is_shared => return Err(self.not_held(backend, resource, &[])),
            LookUp::Ambiguous(sources) => return Err(ConsoleError::Ambiguous { sources }),
            LookUp::NoSuchBackend => {
                return Err(ConsoleError::NotFound {
                    what: format!("no backend is named {backend}"),
                });
            }
            LookUp::NotHeld(seen) => {
                let seen = if is_shared { Vec::new() } else { seen };
                let seen = self.with_history(backend, source, &names, seen).await;
                return Err(self.not_held(backend, resource, &seen));
            }
        };
        let names = std::slice::from_ref(&lock.id.resource);
        let seen = self
            .with_history(backend, Some(&lock.id.source), names, seen)
            .await;
        let view = self.view(backend);
        let is_down = view
            .as_ref()
            .is_some_and(|view| view.status == BackendStatus::Down);
        let fresh = if is_down {
            Reported::unknown("the backend is down")
        } else {
            self.read_fresh(&lock).await
        };
        Ok(LockDetail {
            no_unlock: None,
            lock,
            backend_status: view.as_ref().map_or(BackendStatus::Starting, |view| view.status),
            backend_fault: view.and_then(|view| view.fault),
            fresh,
            seen,
            past: None,
            charts: None,
        })
    }

    /// Recent events of the inventory merged with history; without history if it does not answer in time.
    pub(super) async fn with_history(
        &self,
        backend: &BackendName,
        source: Option<&Source>,
        names: &[Resource],
        seen: Vec<SeenEvent>,
    ) -> Vec<SeenEvent> {
        let Some(history) = &self.history else { return seen };
        let reading = async {
            let mut stored = Vec::new();
            for name in names {
                stored.extend(history.lock_events(backend, source, name, SEEN_MAX).await?);
            }
            Ok::<_, sqlx::Error>(stored)
        };
        match tokio::time::timeout(HISTORY_TIMEOUT, reading).await {
            Ok(Ok(stored)) => history::merge_events(stored, seen, SEEN_MAX),
            Ok(Err(error)) => {
                tracing::warn!("history cannot be read: {error}");
                seen
            }
            Err(_) => seen,
        }
    }

    /// A name that no scan has found. Without a scan since the start, or of a backend that is down, that does not mean
    /// that it is free.
    fn not_held(&self, backend: &BackendName, resource: &str, seen: &[SeenEvent]) -> ConsoleError {
        match self.view(backend).filter(BackendView::is_unread) {
            Some(view) => ConsoleError::Unread {
                what: format!(
                    "it is unknown whether {} is held on {backend}: the backend is {}",
                    shown_name(resource),
                    view.status.as_str()
                ),
            },
            None => not_held(backend, resource, seen),
        }
    }
}

/// With the length of each part, because a name may contain any character: different parts have different keys.
fn key(parts: &[&str]) -> String {
    parts
        .iter()
        .map(|part| format!("{}:{part}", part.len()))
        .collect()
}

fn shown_name(resource: &str) -> String {
    let name = domain::escape::visible(resource).into_owned();
    if name.len() > 200 {
        Resource::from(&name[..name.floor_char_boundary(200)]).text()
    } else {
        name
    }
}

fn not_held(backend: &BackendName, resource: &str, seen: &[SeenEvent]) -> ConsoleError {
    let name = shown_name(resource);
    let newest = seen
        .iter()
        .find(|event| !matches!(event.kind, EventKind::Unwatched | EventKind::WatchedAgain));
    let what = match newest {
        Some(event) => {
            let at = event.at.format("%Y-%m-%d %H:%M:%S UTC");
            format!(
                "{name} is not held on {backend} now; last seen {} at {at}",
                event.kind.label()
            )
        }
        None => format!("{name} is not held on {backend} now"),
    };
    ConsoleError::NotFound { what }
}
