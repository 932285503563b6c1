//! A lock that nobody holds, on its own page: what history, the ledger and the lease service remember of it, and whether it
//! is known to be free now.
//!
//! **Invariant:** a lock is told to be free only where the backend was read; where it was not, that is unknown.

use app::charts::past::{Last, Past, facts};
use app::console::{Console, ConsoleError};
use chrono::{DateTime, TimeDelta, Utc};
use domain::backend::{BackendStatus, BackendView};
use domain::detail::{EventKind, Fresh, LockCharts, LockDetail, SeenEvent};
use domain::known::Known;
use domain::lease::StoreTime;
use domain::lock::Lock;
use domain::names::{BackendName, LockId, Resource, Source};
use domain::observation::ObservedLock;
use domain::safety::{Safety, SafetyClass};
use domain::state::LockState;
use domain::token::FencingToken;

use super::{FRESH_PATIENCE, ServerConsole, Sources};
use crate::inventory::LookUp;
use crate::lease::{Caller, RejectionsAsked};

/// How long a page waits to hear whether anything is remembered: without it there is no page.
const MEMORY_PATIENCE: std::time::Duration = std::time::Duration::from_secs(3);

/// Forced releases of one name that are read: two sources may hold the same name.
const RELEASES_READ: u32 = 10;

/// What is remembered of one name.
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
            .look_up(&backend, source.as_ref(), &resource, self.clock.now())
        {
            LookUp::NotHeld(_) => {}
            // Taken in this very moment.
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
                    what: "what is remembered of this name cannot be read now: nobody is seen to hold it, and whether anybody ever did is unknown".to_owned(),
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
        sources: &Sources,
        backend: &BackendName,
        source: Option<&Source>,
        resource: Resource,
    ) -> Result<Option<Memory>, sqlx::Error> {
        let is_ours = *backend == BackendName::builtin();
        let (lately_on, lately) = self.inventory.seen_lately(backend, source, &resource).unzip();
        let written = sources
            .history
            .events_of(backend, source, &resource, (0, i64::MAX), 1)
            .await?;
        let is_written = !written.is_empty();
        let on = source.cloned().or(lately_on);
        let on = on.or_else(|| written.into_iter().next().map(|event| event.source));
        let Some(on) = on.or_else(|| is_ours.then(|| Source::fixed("lease"))) else {
            return Ok(None);
        };
        let names = std::slice::from_ref(&resource);
        let seen = self
            .with_history(backend, Some(&on), names, lately.unwrap_or_default())
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
        let past = Past {
            last: &last,
            holder: fresh.clone().map(|_| ()),
            source: &id.source,
            looked_at,
            newest_token,
        };
        let charts = LockCharts {
            past: facts(&past).into_string(),
            ..LockCharts::default()
        };
        // The charts' range reaches back to it.
        let shown_ms = last.began.or(last.seen_at).map(|at| now - at);
        let shown_ms = shown_ms.map_or(0, |shown| shown.num_milliseconds().max(0));
        LockDetail {
            lock: nobodys(id, view, (looked_at, age_ms), shown_ms),
            backend_status: view.status,
            backend_fault: view.fault.clone(),
            no_unlock: Some("nobody is known to hold it".to_owned()),
            fresh,
            seen,
            is_past: true,
            charts,
        }
    }

    /// The last holding, with who ended it where that was by force.
    async fn last(&self, id: &LockId, seen: &[SeenEvent]) -> Last {
        let mut last = Last::of(seen);
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
            // Its end was not seen, and this was later than the last that was.
            None => last.seen_at.is_none_or(|seen_at| seen_at <= at),
        };
        if is_its_end {
            last.owner = last.owner.or_else(|| unlock.observed.owner_id.known().cloned());
            last.end = last.end.or(Some((EventKind::Revoked, at)));
            last.released_by = Some(unlock.by_name);
        }
        last
    }

    /// Absent, with `why`, where the backend was read without it; and how old that reading is, in milliseconds.
    async fn is_free(&self, view: &BackendView, id: &LockId, why: String) -> (Known<Fresh>, i64) {
        let looked_ms = view.age_ms.unwrap_or(0);
        let is_blind = view.status.blinds_rows() || view.status == BackendStatus::Starting;
        let unread = format!(
            "the backend is {}: whether anybody holds it now is not known",
            view.status.wire()
        );
        let Some(backend) = self.backends.get(&id.backend).filter(|_| !is_blind) else {
            return (Known::Unknown(unread.into()), looked_ms);
        };
        let asked = backend.inspect(&id.source, &id.resource);
        let is_force_released = |lock: &ObservedLock| {
            let read_at = self.clock.now().wall;
            self.inventory.is_force_released(&id.backend, lock, read_at)
        };
        match tokio::time::timeout(FRESH_PATIENCE, asked).await {
            Ok(Ok(found)) if found.lock.as_ref().is_none_or(is_force_released) => {
                (Known::Absent(why.into()), 0)
            }
            Ok(Ok(_)) => {
                let taken = "somebody has taken it since the last look; this page follows with the next one";
                (Known::unknown(taken), looked_ms)
            }
            // The last look was whole, and it was not there.
            _ if view.status == BackendStatus::Live => (Known::Absent(why.into()), looked_ms),
            _ => (Known::unknown("it could not be read just now"), looked_ms),
        }
    }
}

/// The newest token of our own service; none: it was never granted, or that cannot be read.
async fn granted(sources: &Sources, resource: &Resource) -> Option<FencingToken> {
    let now = sources.leases.resource(&Caller::server(), resource).await.ok()?;
    (now.last_token.number() > 0).then_some(now.last_token)
}

async fn refused(sources: &Sources, resource: &Resource) -> bool {
    let asked = RejectionsAsked {
        resource: Some(resource.clone()),
        names: None,
        from: StoreTime::from_ms(i64::MIN),
        until: StoreTime::from_ms(i64::MAX),
        most: 1,
    };
    sources
        .leases
        .ledger(&asked)
        .await
        .is_ok_and(|rows| !rows.is_empty())
}

/// A row in which nothing is held.
fn nobodys(id: LockId, view: &BackendView, (at, age_ms): (DateTime<Utc>, i64), shown_ms: i64) -> Lock {
    const NOBODY: &str = "nobody is known to hold it";
    Lock {
        id,
        kind: view.kind,
        owner_id: Known::absent(NOBODY),
        owner_count: 0,
        lease_id: Known::absent(NOBODY),
        generation: Known::absent(NOBODY),
        fencing_token: Known::absent(NOBODY),
        acquired_at: Known::absent(NOBODY),
        expires_at: Known::absent(NOBODY),
        held_ms: Known::absent(NOBODY),
        held_at_least_ms: shown_ms,
        ttl_ms: Known::absent(NOBODY),
        remaining_ms: Known::absent(NOBODY),
        waiter_count: Known::absent(NOBODY),
        state: LockState::Unknown,
        reasons: Vec::new(),
        safety: Safety {
            class: SafetyClass::Efficiency,
            why: NOBODY.into(),
        },
        renewal: Known::absent(NOBODY),
        observed_at: at,
        age_ms,
        track_ms: None,
        notch_ms: None,
        low_marks_ms: Vec::new(),
        session_bound: false,
    }
}
