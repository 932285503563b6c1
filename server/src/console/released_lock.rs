//! Page of a lock that is not held: its history, fencing rejections and last lease, and whether it is known to be
//! free.
//!
//! **Invariant:** a lock is shown as free only if the backend was read; otherwise that is unknown.

use app::console::{Console, ConsoleError};
use chrono::{DateTime, TimeDelta, Utc};
use domain::backend::{BackendStatus, BackendView};
use domain::lease::StoreTime;
use domain::lock::Lock;
use domain::lock_detail::{EventKind, Fresh, LastHolding, LockDetail, PastLock, SeenEvent};
use domain::names::{BackendName, LockId, Resource, Source};
use domain::observation::ObservedLock;
use domain::reported::Reported;
use domain::safety::{Safety, SafetyClass};
use domain::state::LockState;
use domain::token::FencingToken;

use super::fresh_read::FRESH_PATIENCE;
use super::{ChartSources, ServerConsole};
use inventory::LookUp;
use lease::{LeaseCaller, RejectionQuery};

/// Timeout of the queries for stored facts, without which there is no page.
const MEMORY_PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

/// Forced releases read per name: two sources can have the same name.
const RELEASES_READ: u32 = 10;

/// Stored facts about one name.
struct Memory {
    id: LockId,
    seen: Vec<SeenEvent>,
    newest_token: Option<FencingToken>,
}

impl ServerConsole {
    pub(super) async fn remembered(
        &self,
        backend: BackendName,
        source: Option<Source>,
        resource: String,
    ) -> Result<Option<LockDetail>, ConsoleError> {
        match self
            .inventory
            .find_lock(&backend, source.as_ref(), &resource, self.clock.now())
        {
            LookUp::NotHeld(_) => {}
            // Acquired in the meantime.
            LookUp::Found(..) => return self.lock(backend, source, resource).await.map(Some),
            LookUp::Ambiguous(_) | LookUp::NoSuchBackend => return Ok(None),
        }
        let Some((view, sources)) = self.view(&backend).zip(self.charts.clone()) else {
            return Ok(None);
        };
        let scope = self.visible.on(&backend);
        for name in Resource::candidates(&resource) {
            if !scope.covers_bytes(name.as_bytes()) {
                continue;
            }
            let memory = self.memory(&sources, &backend, source.as_ref(), name);
            let memory = tokio::time::timeout(MEMORY_PATIENCE, memory).await;
            let Ok(Ok(memory)) = memory else {
                return Err(ConsoleError::NotFound {
                    what: "the history of this lock cannot be read now: no holder is observed, and earlier holders are unknown".to_owned(),
                });
            };
            if let Some(memory) = memory {
                return Ok(Some(self.past_detail(&view, memory).await));
            }
        }
        Ok(None)
    }

    async fn memory(
        &self,
        sources: &ChartSources,
        backend: &BackendName,
        source: Option<&Source>,
        resource: Resource,
    ) -> Result<Option<Memory>, sqlx::Error> {
        let is_ours = *backend == BackendName::builtin();
        let (recent_on, recent) = self.inventory.recently_seen(backend, source, &resource).unzip();
        let written = sources
            .history
            .events_of(backend, source, &resource, (0, i64::MAX), 1)
            .await?;
        let is_written = !written.is_empty();
        let on = source.cloned().or(recent_on);
        let on = on.or_else(|| written.into_iter().next().map(|event| event.source));
        let Some(on) = on.or_else(|| is_ours.then(|| Source::fixed("lease"))) else {
            return Ok(None);
        };
        let names = std::slice::from_ref(&resource);
        let seen = self
            .with_history(backend, Some(&on), names, recent.unwrap_or_default())
            .await;
        let (newest_token, is_in_ledger) = if is_ours {
            (
                granted(sources, &resource).await,
                refused(sources, &resource).await,
            )
        } else {
            (None, false)
        };
        let is_known = is_written || !seen.is_empty() || newest_token.is_some() || is_in_ledger;
        let id = LockId {
            backend: backend.clone(),
            source: on,
            resource,
        };
        Ok(is_known.then_some(Memory {
            id,
            seen,
            newest_token,
        }))
    }

    async fn past_detail(&self, view: &BackendView, memory: Memory) -> LockDetail {
        let Memory {
            id,
            seen,
            newest_token,
        } = memory;
        let last = self.last(&id, &seen).await;
        let (fresh, age_ms) = self.is_free(view, &id, last.sentence()).await;
        let now = self.clock.now().wall;
        let looked_at = now - TimeDelta::milliseconds(age_ms);
        // The range of the charts includes it.
        let shown_ms = last.began.or(last.seen_at).map(|at| now - at);
        let shown_ms = shown_ms.map_or(0, |shown| shown.num_milliseconds().max(0));
        LockDetail {
            lock: free_lock(id, view, (looked_at, age_ms), shown_ms),
            backend_status: view.status,
            backend_fault: view.fault.clone(),
            no_unlock: Some("no holder is known".to_owned()),
            fresh,
            seen,
            past: Some(PastLock { last, newest_token }),
            charts: None,
        }
    }

    /// The last holding, with the author of a forced release.
    async fn last(&self, id: &LockId, seen: &[SeenEvent]) -> LastHolding {
        let mut last = LastHolding::from_events(seen);
        let Some(sources) = &self.charts else { return last };
        let released = sources.unlocks.released(&id.backend, &id.resource, RELEASES_READ);
        let Ok(Ok(released)) = tokio::time::timeout(MEMORY_PATIENCE, released).await else {
            return last;
        };
        let newest = released.into_iter().find(|unlock| unlock.source == id.source);
        let Some((unlock, at)) = newest.and_then(|unlock| unlock.ended_at.map(|at| (unlock, at))) else {
            return last;
        };
        let is_its_end = match last.end {
            Some((kind, _)) => kind == EventKind::Revoked,
            // Its end was not observed, and this is later than the last observation.
            None => last.seen_at.is_none_or(|seen_at| seen_at <= at),
        };
        if is_its_end {
            last.owner = last.owner.or_else(|| unlock.observed.owner_id.known().cloned());
            last.end = last.end.or(Some((EventKind::Revoked, at)));
            last.released_by = Some(unlock.by_name);
        }
        last
    }

    /// `NotApplicable` with `why` if the backend was read without it; and the age of that read in milliseconds.
    async fn is_free(&self, view: &BackendView, id: &LockId, why: String) -> (Reported<Fresh>, i64) {
        let looked_ms = view.age_ms.unwrap_or(0);
        let is_blind = view.status.blinds_rows() || view.status == BackendStatus::Starting;
        let unread = format!(
            "the backend is {}: the present holder is unknown",
            view.status.as_str()
        );
        let Some(backend) = self.backends.get(&id.backend).filter(|_| !is_blind) else {
            return (Reported::Unknown(unread.into()), looked_ms);
        };
        let reading = backend.inspect(&id.source, &id.resource);
        let is_force_released = |lock: &ObservedLock| {
            let read_at = self.clock.now().wall;
            self.inventory.is_force_released(&id.backend, lock, read_at)
        };
        match tokio::time::timeout(FRESH_PATIENCE, reading).await {
            Ok(Ok(found)) if found.lock.as_ref().is_none_or(is_force_released) => {
                (Reported::NotApplicable(why.into()), 0)
            }
            Ok(Ok(_)) => {
                let taken =
                    "it was acquired after the last scan; this page shows the holder after the next scan";
                (Reported::unknown(taken), looked_ms)
            }
            // The last scan was complete and did not contain it.
            _ if view.status == BackendStatus::Live => (Reported::NotApplicable(why.into()), looked_ms),
            _ => (Reported::unknown("the lock could not be read"), looked_ms),
        }
    }
}

/// The newest token of the built-in service; `None` if never granted or unreadable.
async fn granted(sources: &ChartSources, resource: &Resource) -> Option<FencingToken> {
    let now = sources
        .leases
        .resource(&LeaseCaller::server(), resource)
        .await
        .ok()?;
    (now.last_token.number() > 0).then_some(now.last_token)
}

async fn refused(sources: &ChartSources, resource: &Resource) -> bool {
    let reading = RejectionQuery {
        resource: Some(resource.clone()),
        names: None,
        from: StoreTime::from_ms(i64::MIN),
        until: StoreTime::from_ms(i64::MAX),
        most: 1,
    };
    sources
        .leases
        .query_rejections(&reading)
        .await
        .is_ok_and(|found| !found.rows.is_empty())
}

/// A list row for a lock that is not held.
fn free_lock(id: LockId, view: &BackendView, (at, age_ms): (DateTime<Utc>, i64), shown_ms: i64) -> Lock {
    const NOBODY: &str = "no holder is known";
    Lock {
        id,
        kind: view.kind,
        owner_id: Reported::absent(NOBODY),
        owner_count: 0,
        lease_id: Reported::absent(NOBODY),
        generation: Reported::absent(NOBODY),
        fencing_token: Reported::absent(NOBODY),
        acquired_at: Reported::absent(NOBODY),
        expires_at: Reported::absent(NOBODY),
        held_ms: Reported::absent(NOBODY),
        held_at_least_ms: shown_ms,
        ttl_ms: Reported::absent(NOBODY),
        remaining_ms: Reported::absent(NOBODY),
        waiter_count: Reported::absent(NOBODY),
        state: LockState::Unknown,
        reasons: Vec::new(),
        safety: Safety {
            class: SafetyClass::Efficiency,
            why: NOBODY.into(),
        },
        renewal: Reported::absent(NOBODY),
        observed_at: at,
        age_ms,
        track_ms: None,
        notch_ms: None,
        low_marks_ms: Vec::new(),
        session_bound: false,
    }
}
