//! The answer of `GET /v1/waits`.

use domain::names::LockId;
use domain::waits::page::{
    Cut, CycleHop, DeadlockView, JoinReason, SuggestedRelease, WaitSourceView, WaitView, WaitsPage,
};
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Waits")]
pub(in crate::http) struct WaitsDto {
    /// The finding in one sentence.
    title: String,
    /// Certain ones first.
    deadlocks: Vec<DeadlockDto>,
    deadlocks_total: usize,
    /// Longest first.
    waits: Vec<WaitDto>,
    waits_total: usize,
    sources: Vec<WaitSourceDto>,
    /// Names of the identity rules. Empty: owners of different backends are never joined.
    identity_rules: Vec<String>,
    /// Some waits are not in the graph, because of its limits.
    is_cut: bool,
    /// How many; null for a caller who sees a part of the names.
    cut_waits: Option<u64>,
    /// The caller sees a part of the names.
    is_limited: bool,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Deadlock")]
pub(in crate::http) struct DeadlockDto {
    /// False: possible; `doubt` has the reason.
    is_certain: bool,
    doubt: Option<String>,
    /// Since the last of its waits began.
    closed_ms: i64,
    /// In order: each owner waits for the next one, the last for the first.
    cycle: Vec<CycleHopDto>,
    /// The backends of its visible waits.
    backends: Vec<String>,
    /// Owners in it and behind it.
    blocked_owners: usize,
    /// A wait of it is out of the caller's scope.
    is_partly_hidden: bool,
    releases: Vec<SuggestedReleaseDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "CycleHop")]
pub(in crate::http) struct CycleHopDto {
    owner: String,
    /// Why two identities are this owner; null if it has one.
    joined: Option<JoinReasonDto>,
    /// Null: for another lock, out of the caller's scope.
    wait: Option<WaitDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "JoinReason")]
pub(in crate::http) struct JoinReasonDto {
    /// Null: joined through further identities, by several rules.
    rule: Option<String>,
    values: std::collections::BTreeMap<String, String>,
    identities: Vec<OwnerIdentityDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "OwnerIdentity")]
pub(in crate::http) struct OwnerIdentityDto {
    backend: String,
    owner: String,
    /// The field that the rule matched.
    field: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "LockName")]
pub(in crate::http) struct LockNameDto {
    backend: String,
    source: String,
    resource: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Wait")]
pub(in crate::http) struct WaitDto {
    #[serde(flatten)]
    lock: LockNameDto,
    waiter: String,
    holder: String,
    /// The request of the waiter, such as `ShareLock on transaction 812`; null if the backend does not report it.
    wants: Option<String>,
    /// How the backend knows who waits for whom.
    evidence: String,
    /// `current`, `partial`: the last scan covered a part of the backend, `stale`: the reading is old.
    trust: &'static str,
    waited_ms: i64,
    /// Counted from its first observation: it may have waited longer.
    is_waited_lower_bound: bool,
    held_ms: Option<i64>,
    /// Age of the reading.
    age_ms: i64,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "SuggestedRelease")]
pub(in crate::http) struct SuggestedReleaseDto {
    #[serde(flatten)]
    lock: LockNameDto,
    holder: String,
    /// The session is ended, with all that it holds.
    ends_session: bool,
    freed_owners: usize,
    at_once: Vec<String>,
    then: Vec<String>,
    side_effect: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "WaitSource")]
pub(in crate::http) struct WaitSourceDto {
    backend: String,
    kind: &'static str,
    status: &'static str,
    age_ms: Option<i64>,
    /// Null: it reports no waiters, so its waits are unknown.
    evidence: Option<String>,
    /// Locks with waiters that are counted and not identified.
    unidentified_locks: u64,
}

impl From<WaitsPage> for WaitsDto {
    fn from(page: WaitsPage) -> Self {
        Self {
            title: page.title,
            deadlocks: page.deadlocks.into_iter().map(DeadlockDto::from).collect(),
            deadlocks_total: page.deadlocks_total,
            waits: page.waits.into_iter().map(WaitDto::from).collect(),
            waits_total: page.waits_total,
            sources: page.sources.into_iter().map(WaitSourceDto::from).collect(),
            identity_rules: page.rules,
            is_cut: page.cut.is_some(),
            cut_waits: match page.cut {
                Some(Cut::Waits(waits)) => Some(waits),
                Some(Cut::Some) => None,
                None => (!page.is_limited).then_some(0),
            },
            is_limited: page.is_limited,
        }
    }
}

impl From<DeadlockView> for DeadlockDto {
    fn from(deadlock: DeadlockView) -> Self {
        Self {
            is_certain: deadlock.doubt.is_none(),
            doubt: deadlock.doubt,
            closed_ms: deadlock.closed_ms,
            cycle: deadlock.hops.into_iter().map(CycleHopDto::from).collect(),
            backends: deadlock.backends.iter().map(ToString::to_string).collect(),
            blocked_owners: deadlock.blocked,
            is_partly_hidden: deadlock.is_partly_hidden,
            releases: deadlock
                .releases
                .into_iter()
                .map(SuggestedReleaseDto::from)
                .collect(),
        }
    }
}

impl From<CycleHop> for CycleHopDto {
    fn from(hop: CycleHop) -> Self {
        Self {
            owner: hop.owner,
            joined: hop.joined.map(JoinReasonDto::from),
            wait: hop.wait.map(WaitDto::from),
        }
    }
}

impl From<JoinReason> for JoinReasonDto {
    fn from(joined: JoinReason) -> Self {
        let identities = joined.identities.into_iter().map(|identity| OwnerIdentityDto {
            backend: identity.backend.to_string(),
            owner: identity.owner,
            field: identity.field,
        });
        Self {
            rule: joined.rule,
            values: joined.values.into_iter().collect(),
            identities: identities.collect(),
        }
    }
}

impl From<LockId> for LockNameDto {
    fn from(lock: LockId) -> Self {
        Self {
            backend: lock.backend.to_string(),
            source: lock.source.to_string(),
            resource: lock.resource.text(),
        }
    }
}

impl From<WaitView> for WaitDto {
    fn from(wait: WaitView) -> Self {
        Self {
            lock: wait.lock.into(),
            waiter: wait.waiter,
            holder: wait.holder,
            wants: wait.wants,
            evidence: wait.evidence,
            trust: wait.trust.as_str(),
            waited_ms: wait.waited_ms,
            is_waited_lower_bound: wait.is_at_least,
            held_ms: wait.held_ms,
            age_ms: wait.age_ms,
        }
    }
}

impl From<SuggestedRelease> for SuggestedReleaseDto {
    fn from(release: SuggestedRelease) -> Self {
        Self {
            freed_owners: release.freed(),
            lock: release.lock.into(),
            holder: release.holder,
            ends_session: release.ends_session,
            at_once: release.at_once,
            then: release.then,
            side_effect: release.side_effect,
        }
    }
}

impl From<WaitSourceView> for WaitSourceDto {
    fn from(source: WaitSourceView) -> Self {
        Self {
            backend: source.backend.to_string(),
            kind: source.kind.as_str(),
            status: source.status.as_str(),
            age_ms: source.age_ms,
            evidence: source.evidence,
            unidentified_locks: source.unidentified_locks,
        }
    }
}
