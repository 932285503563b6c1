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

use super::fresh_read::FRESH_READ_TIMEOUT;
use super::{ChartSources, ServerConsole, store_unavailable};
use inventory::LookUp;
use lease::{LeaseCaller, LeaseError, RejectionQuery};

/// Timeout of the queries for stored facts, without which there is no page.
const FACTS_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(3);

/// Forced releases read per name: two sources can have the same name.
const RELEASES_READ: u32 = 10;

/// Stored facts about one name.
struct StoredFacts {
    id: LockId,
    seen: Vec<SeenEvent>,
    /// The error of a lease store that does not answer.
    newest_token: Result<Option<FencingToken>, LeaseError>,
}

impl ServerConsole {
    pub(super) async fn released_lock(
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
            let facts = self.load_stored_facts(&sources, &backend, source.as_ref(), name);
            let facts = tokio::time::timeout(FACTS_TIMEOUT, facts).await;
            let Ok(Ok(facts)) = facts else {
                return Err(ConsoleError::Unavailable {
                    what: "the history of this lock cannot be read now: no holder is observed, and earlier holders are unknown".to_owned(),
                });
            };
            if let Some(facts) = facts {
                return Ok(Some(self.past_detail(&view, facts).await));
            }
        }
        Ok(None)
    }

    async fn load_stored_facts(
        &self,
        sources: &ChartSources,
        backend: &BackendName,
        source: Option<&Source>,
        resource: Resource,
    ) -> Result<Option<StoredFacts>, ConsoleError> {
        let is_builtin = *backend == BackendName::builtin();
        let (recent_source, recent) = self
            .inventory
            .recent_events_of(backend, source, &resource)
            .unzip();
        let stored = sources
            .history
            .events_of(backend, source, &resource, (0, i64::MAX), 1)
            .await
            .map_err(store_unavailable)?;
        let is_stored = !stored.is_empty();
        let lock_source = source.cloned().or(recent_source);
        let lock_source = lock_source.or_else(|| stored.into_iter().next().map(|event| event.source));
        let Some(lock_source) = lock_source.or_else(|| is_builtin.then(|| Source::fixed("lease"))) else {
            return Ok(None);
        };
        let names = std::slice::from_ref(&resource);
        let seen = self
            .with_history(backend, Some(&lock_source), names, recent.unwrap_or_default())
            .await;
        let newest_token = match is_builtin {
            true => newest_granted_token(sources, &resource).await,
            false => Ok(None),
        };
        let is_known = is_stored
            || !seen.is_empty()
            || newest_token.as_ref().map_err(store_unavailable)?.is_some()
            || (is_builtin
                && has_rejections(sources, &resource)
                    .await
                    .map_err(store_unavailable)?);
        let id = LockId {
            backend: backend.clone(),
            source: lock_source,
            resource,
        };
        Ok(is_known.then_some(StoredFacts {
            id,
            seen,
            newest_token,
        }))
    }

    async fn past_detail(&self, view: &BackendView, facts: StoredFacts) -> LockDetail {
        let StoredFacts {
            id,
            seen,
            newest_token,
        } = facts;
        let mut last = self.last_holding(&id, &seen).await;
        if newest_token.is_err() {
            // There may be a newer one than that of the last holding.
            last.token = None;
        }
        let newest_token = newest_token.ok().flatten();
        let (fresh, age_ms) = self.read_free_state(view, &id, last.sentence()).await;
        let now = self.clock.now().wall;
        let read_at = now - TimeDelta::milliseconds(age_ms);
        // The range of the charts includes it.
        let shown_ms = last.began.or(last.seen_at).map(|at| now - at);
        let shown_ms = shown_ms.map_or(0, |shown| shown.num_milliseconds().max(0));
        LockDetail {
            lock: free_lock(id, view, (read_at, age_ms), shown_ms),
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
    async fn last_holding(&self, id: &LockId, seen: &[SeenEvent]) -> LastHolding {
        let mut last = LastHolding::from_events(seen);
        let Some(sources) = &self.charts else { return last };
        let released = sources.unlocks.released(&id.backend, &id.resource, RELEASES_READ);
        let Ok(Ok(released)) = tokio::time::timeout(FACTS_TIMEOUT, released).await else {
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
    async fn read_free_state(&self, view: &BackendView, id: &LockId, why: String) -> (Reported<Fresh>, i64) {
        let scan_age_ms = view.age_ms.unwrap_or(0);
        let is_blind = view.status.blinds_rows() || view.status == BackendStatus::Starting;
        let reason = format!(
            "the backend is {}: the present holder is unknown",
            view.status.as_str()
        );
        let Some(backend) = self.backends.get(&id.backend).filter(|_| !is_blind) else {
            return (Reported::Unknown(reason.into()), scan_age_ms);
        };
        let reading = async {
            let _permit = self.backends.page_read(&id.backend).await;
            backend.inspect(&id.source, &id.resource).await
        };
        let is_force_released = |lock: &ObservedLock| {
            let read_at = self.clock.now().wall;
            self.inventory.is_force_released(&id.backend, lock, read_at)
        };
        match tokio::time::timeout(FRESH_READ_TIMEOUT, reading).await {
            Ok(Ok(found)) if found.lock.as_ref().is_none_or(is_force_released) => {
                (Reported::NotApplicable(why.into()), 0)
            }
            Ok(Ok(_)) => {
                let reason =
                    "it was acquired after the last scan; this page shows the holder after the next scan";
                (Reported::unknown(reason), scan_age_ms)
            }
            // The last scan was complete and did not contain it.
            _ if view.status == BackendStatus::Live => (Reported::NotApplicable(why.into()), scan_age_ms),
            _ => (Reported::unknown("the lock could not be read"), scan_age_ms),
        }
    }
}

/// The newest token of the built-in service; `None` if never granted.
async fn newest_granted_token(
    sources: &ChartSources,
    resource: &Resource,
) -> Result<Option<FencingToken>, LeaseError> {
    let now = sources.leases.resource(&LeaseCaller::server(), resource).await?;
    Ok((now.last_token.number() > 0).then_some(now.last_token))
}

async fn has_rejections(sources: &ChartSources, resource: &Resource) -> Result<bool, LeaseError> {
    let reading = RejectionQuery {
        resource: Some(resource.clone()),
        names: None,
        from: StoreTime::from_ms(i64::MIN),
        until: StoreTime::from_ms(i64::MAX),
        most: 1,
    };
    let found = sources.leases.query_rejections(&reading).await?;
    Ok(!found.rows.is_empty())
}

/// A list row for a lock that is not held.
fn free_lock(id: LockId, view: &BackendView, (at, age_ms): (DateTime<Utc>, i64), shown_ms: i64) -> Lock {
    const NO_HOLDER: &str = "no holder is known";
    Lock {
        id,
        kind: view.kind,
        owner_id: Reported::absent(NO_HOLDER),
        owner_count: 0,
        lease_id: Reported::absent(NO_HOLDER),
        generation: Reported::absent(NO_HOLDER),
        fencing_token: Reported::absent(NO_HOLDER),
        acquired_at: Reported::absent(NO_HOLDER),
        expires_at: Reported::absent(NO_HOLDER),
        held_ms: Reported::absent(NO_HOLDER),
        held_at_least_ms: shown_ms,
        ttl_ms: Reported::absent(NO_HOLDER),
        remaining_ms: Reported::absent(NO_HOLDER),
        waiter_count: Reported::absent(NO_HOLDER),
        state: LockState::Unknown,
        reasons: Vec::new(),
        safety: Safety {
            class: SafetyClass::Efficiency,
            why: NO_HOLDER.into(),
        },
        renewal: Reported::absent(NO_HOLDER),
        observed_at: at,
        age_ms,
        track_ms: None,
        notch_ms: None,
        low_marks_ms: Vec::new(),
        session_bound: false,
    }
}
