//! One lock with what was read fresh.

use chrono::{DateTime, Utc};
use domain::blockers::Blocker;
use domain::lock_detail::{Fresh, LockDetail, SeenEvent};
use domain::observation::{RawField, Session, Waiter};
use domain::quorum::NodeCell;
use domain::reported::Reported;
use serde::Serialize;
use utoipa::ToSchema;

use super::lock::LockDto;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "LockDetail")]
pub struct DetailDto {
    #[serde(flatten)]
    lock: LockDto,
    waiters: Vec<WaiterDto>,
    owners: Vec<String>,
    #[schema(no_recursion)]
    blockers: Vec<BlockerDto>,
    session: Option<BackendSessionDto>,
    /// For a lock on several independent nodes: `held`, `split`, `leftover`, `lost` or `unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    quorum: Option<&'static str>,
    /// Each of these nodes, in configured order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<NodeDto>,
    /// The record as the backend keeps it, in its own order.
    raw: Vec<RawDto>,
    /// Locks and sessions that end with the same lease or session.
    related_locks: Vec<String>,
    /// When the parts above were read; null when the backend could not be asked, and `freshError` says why.
    read_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh_error: Option<String>,
    /// Recent events, newest first.
    seen: Vec<SeenDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaiterDto {
    pub(super) position: u32,
    pub(super) owner_id: String,
    pub(super) waited_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) lease_remaining_ms: Option<i64>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockerDto {
    owner_id: String,
    pid: Option<i32>,
    doing: String,
    holds: String,
    waited_ms: Option<i64>,
    #[schema(no_recursion)]
    blocks: Vec<BlockerDto>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackendSessionDto {
    pid: i32,
    application_name: String,
    client_address: Option<String>,
    state: String,
    query: String,
    transaction_age_ms: Option<i64>,
}

/// One node of a lock that is stored on several independent nodes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDto {
    node: String,
    reachable: bool,
    /// The value or its fingerprint; null without a key, and where it is not known.
    value: Option<String>,
    owner_id: Option<String>,
    /// Null without a key or a TTL, and where it is not known.
    remaining_ms: Option<i64>,
    /// Since the node last answered.
    age_ms: Option<i64>,
    answer_ms: Option<i64>,
    clock_offset_ms: Option<i64>,
    /// Why it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RawDto {
    name: String,
    value: String,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeenDto {
    /// `acquired`, `reclaimed`, `share_acquired`, `granted_after_wait` (in addition to the grant), `waiting`, `released`,
    /// `share_released`, `expired`, `revoked`, `rejected`, `lost`, `unwatched` or `watched_again`.
    kind: &'static str,
    /// When it was first seen.
    at: DateTime<Utc>,
    /// First seen after an outage of the backend: it happened between this time and `at`.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<DateTime<Utc>>,
    owner_id: Option<String>,
    fencing_token: Option<String>,
    /// For `granted_after_wait`: the time that it waited in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<i64>,
    /// The trace that did it, where its client was in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<String>,
}

impl From<LockDetail> for DetailDto {
    fn from(detail: LockDetail) -> Self {
        let (fresh, fresh_error) = match detail.fresh {
            Reported::Value(fresh) => (Some(fresh), None),
            Reported::Unknown(why) | Reported::NotApplicable(why) => (None, Some(why.into_owned())),
        };
        let read_at = fresh.as_ref().map(|fresh| fresh.read_at);
        let fresh = fresh.unwrap_or_else(|| Fresh {
            waiters: Vec::new(),
            owners: Vec::new(),
            blockers: Vec::new(),
            session: None,
            quorum: None,
            raw: Vec::new(),
            related_locks: Vec::new(),
            read_at: DateTime::default(),
        });
        let (quorum, nodes) = fresh
            .quorum
            .map(|quorum| (quorum.state.as_str(), quorum.nodes))
            .unzip();
        Self {
            quorum,
            nodes: nodes.into_iter().flatten().map(NodeDto::from).collect(),
            lock: detail.lock.into(),
            waiters: fresh.waiters.into_iter().map(WaiterDto::from).collect(),
            owners: fresh.owners.iter().map(ToString::to_string).collect(),
            blockers: fresh.blockers.into_iter().map(BlockerDto::from).collect(),
            session: fresh.session.map(BackendSessionDto::from),
            raw: fresh.raw.into_iter().map(RawDto::from).collect(),
            related_locks: fresh.related_locks,
            read_at,
            fresh_error,
            seen: detail.seen.into_iter().map(SeenDto::from).collect(),
        }
    }
}

impl From<Waiter> for WaiterDto {
    fn from(waiter: Waiter) -> Self {
        Self {
            position: waiter.position,
            owner_id: waiter.owner_id.to_string(),
            waited_ms: waiter.waited_ms.known().copied(),
            lease_remaining_ms: waiter.lease_remaining_ms,
        }
    }
}

impl From<Blocker> for BlockerDto {
    fn from(blocker: Blocker) -> Self {
        Self {
            owner_id: blocker.owner_id,
            pid: blocker.pid,
            doing: blocker.doing,
            holds: blocker.holds,
            waited_ms: blocker.waited_ms,
            blocks: blocker.blocks.into_iter().map(Self::from).collect(),
        }
    }
}

impl From<Session> for BackendSessionDto {
    fn from(session: Session) -> Self {
        Self {
            pid: session.pid,
            application_name: session.application_name,
            client_address: session.client_address,
            state: session.state,
            query: session.query,
            transaction_age_ms: session.transaction_age_ms,
        }
    }
}

impl From<NodeCell> for NodeDto {
    fn from(cell: NodeCell) -> Self {
        Self {
            node: cell.node,
            reachable: cell.reachable,
            value: cell.value,
            owner_id: cell.owner_id.map(|owner| owner.to_string()),
            remaining_ms: cell.remaining_ms,
            age_ms: cell.age_ms,
            answer_ms: cell.answer_ms,
            clock_offset_ms: cell.clock_offset_ms,
            fault: cell.fault,
        }
    }
}

impl From<RawField> for RawDto {
    fn from(field: RawField) -> Self {
        Self {
            name: field.name,
            value: field.value,
        }
    }
}

impl From<SeenEvent> for SeenDto {
    fn from(event: SeenEvent) -> Self {
        Self {
            kind: event.kind.as_str(),
            at: event.at,
            not_before: event.not_before,
            owner_id: event.owner_id.map(|owner| owner.to_string()),
            fencing_token: event.fencing_token.map(|token| token.to_string()),
            waited_ms: event.waited_ms,
            trace_id: event.trace_id,
        }
    }
}
