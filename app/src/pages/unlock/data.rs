//! Data of the forced unlock's pages. Protection and hindrances are text, because postcard cannot
//! encode their types.

use chrono::{DateTime, Utc};
use domain::force_release::{CasualtyKind, Holding};
use domain::generation::Generation;
use domain::lock::Renewal;
use domain::names::{LockId, OwnerId, Source};
use domain::observation::Waiter;
use domain::quorum::Quorum;
use domain::reported::Reported;
use domain::state::LockState;
use domain::token::FencingToken;
use domain::unlock::{Approval, BreakGlass, EndedHolding, UnlockState};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::ConsoleFuture;

/// `/unlock/{backend}/{resource}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum ReviewData {
    Lock(Box<ReviewedLock>),
    /// Several sources of the backend hold this name.
    Sources {
        name: String,
        sources: Vec<Source>,
    },
    Nothing(NothingToUnlock),
}

/// There is no lock or unlock to show, or it cannot be read now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NothingToUnlock {
    /// HTTP status of the page.
    pub status: u16,
    pub why: String,
    /// Name of the lock, if the URL has one.
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReviewedLock {
    pub id: LockId,
    /// Owner in the inventory, for the link to its other locks.
    pub owner: Option<String>,
    pub holder: HolderData,
    /// Of a Redlock: what each node had.
    pub quorum: Option<Quorum>,
    /// Read from the backend for this page; otherwise the last observation.
    pub is_fresh: bool,
    /// `None`: unknown, or the user may not see everything that would be released.
    pub effects: Option<ReleaseEffects>,
    /// The holding that an intent would be bound to; `None` if there can be no intent.
    pub generation: Option<String>,
    /// Why more than a confirmation is needed; `None` without protection.
    pub protection: Option<String>,
    /// Why the user cannot unlock it now.
    pub hindrance: Option<Hindrance>,
    /// The user came from a page that showed another holding.
    pub has_changed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hindrance {
    pub why: String,
    pub remedy: Option<String>,
}

/// One holding, as read or as last observed. Times are relative to `read_at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HolderData {
    pub owner_id: Reported<OwnerId>,
    pub owner_count: u32,
    pub lease_id: Reported<String>,
    pub fencing_token: Reported<FencingToken>,
    pub acquired_at: Reported<DateTime<Utc>>,
    pub held_ms: Reported<i64>,
    pub held_at_least_ms: Option<i64>,
    pub ttl_ms: Reported<i64>,
    pub remaining_ms: Reported<i64>,
    pub renewal: Reported<Renewal>,
    /// Its holder has stopped renewing.
    pub is_silent: bool,
    pub read_at: DateTime<Utc>,
}

/// What a release ends besides the lock, and who is next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseEffects {
    pub casualties: Vec<CasualtyRow>,
    /// Next in the queue, if the backend keeps a queue order.
    pub next: Option<OwnerId>,
    /// One sentence each.
    pub warnings: Vec<String>,
    pub waiters: Vec<Waiter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CasualtyRow {
    pub kind: CasualtyKind,
    /// In the backend's terms.
    pub what: String,
}

/// `/unlocks/{id}`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StepData {
    Unlock(Box<UnlockStep>),
    Nothing(NothingToUnlock),
}

/// One unlock as its reader may act on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnlockStep {
    pub unlock: UnlockData,
    /// By the server's clock.
    pub now: DateTime<Utc>,
    /// Why a second approver is needed; `None` without protection.
    pub protection: Option<String>,
    pub is_owner: bool,
    /// Why its owner can no longer confirm it.
    pub hindrance: Option<String>,
    pub proof: Proof,
    /// Why there is no second approver yet.
    pub unapproved: Option<String>,
    pub may_approve: bool,
    pub may_review: bool,
    /// Why a user with the role does not count as second approver.
    pub refused_as_second: Option<String>,
    /// Some users who may approve.
    pub approvers: Vec<String>,
    /// Number of receivers that a break-glass unlock notifies.
    pub receivers: u64,
    pub may_read_audit: bool,
    /// URL of this page, for the second approver.
    pub link: String,
}

/// How the user has authenticated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Proof {
    /// This many milliseconds ago, which is recent enough.
    Fresh(i64),
    /// Again, with the password.
    Password,
    /// Again, by the same method: at the identity provider, or here.
    SignIn { at_provider: bool },
    /// An API token cannot.
    Never,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnlockData {
    pub id: String,
    pub state: UnlockState,
    pub lock: LockId,
    pub by_name: String,
    pub reason: String,
    /// The holding that it is bound to.
    pub holding: Holding,
    pub holder: HolderData,
    pub effects: ReleaseEffects,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub approval: Option<Approval>,
    pub break_glass: Option<BreakGlass>,
    /// When the release began.
    pub acted_at: Option<DateTime<Utc>>,
    pub ended_at: Option<DateTime<Utc>>,
    pub ending: EndedHolding,
    pub intent_entry: i64,
    /// Its last audit entry.
    pub last_entry: i64,
    /// How often the lock was read again after an unknown outcome.
    pub rereads: u32,
}

/// `/unlocks`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkSelectData {
    /// Names of backends to choose from.
    pub backends: Vec<String>,
    /// Filters of the URL.
    pub backend: String,
    pub prefix: String,
    pub owner: String,
    /// Worst first, at most the number that may be unlocked at once.
    pub rows: Vec<CandidateRow>,
    /// Number of all matches.
    pub total: u64,
    /// Every backend that may have matches is read completely.
    pub is_complete: bool,
}

/// A held lock that the user may unlock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateRow {
    pub id: LockId,
    pub generation: Reported<Generation>,
    pub owner_id: Reported<OwnerId>,
    pub held_ms: Reported<i64>,
    pub held_at_least_ms: i64,
    pub state: LockState,
}

/// `/unlocks/bulk`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkConfirmData {
    pub items: Vec<BulkItem>,
}

/// One unlock of the batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BulkItem {
    pub unlock: UnlockData,
    /// Why it cannot be confirmed here although it is pending.
    pub elsewhere: Option<String>,
}

impl BulkItem {
    pub fn is_open(&self) -> bool {
        self.unlock.state == UnlockState::Pending && self.elsewhere.is_none()
    }
}

/// Port: the server implements it, for the caller of a request.
pub trait UnlockPort {
    /// Reads the lock from its backend.
    fn unlock_review(
        &self,
        backend: String,
        resource: String,
        search: String,
    ) -> ConsoleFuture<'_, ReviewData>;
    fn unlock(&self, id: String) -> ConsoleFuture<'_, StepData>;
    fn unlock_candidates(&self, search: String) -> ConsoleFuture<'_, BulkSelectData>;
    fn bulk_unlocks(&self, search: String) -> ConsoleFuture<'_, BulkConfirmData>;
}

/// Reads the lock from its backend. `search` is the page's query string.
#[server(name = GetUnlockReview, prefix = "/api", endpoint = "unlock-review", input = GetUrl, output = EncodedResponse)]
pub async fn unlock_review(
    backend: String,
    resource: String,
    search: String,
) -> Result<ReviewData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.unlock_review(backend, resource, search).await)
}

#[server(name = GetUnlock, prefix = "/api", endpoint = "unlock", input = GetUrl, output = EncodedResponse)]
pub async fn unlock(id: String) -> Result<StepData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.unlock(id).await)
}

/// `search` is the page's query string: its filters.
#[server(name = GetUnlockCandidates, prefix = "/api", endpoint = "unlock-candidates", input = GetUrl, output = EncodedResponse)]
pub async fn unlock_candidates(search: String) -> Result<BulkSelectData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.unlock_candidates(search).await)
}

/// `search` is the page's query string: the ids.
#[server(name = GetBulkUnlocks, prefix = "/api", endpoint = "bulk-unlocks", input = GetUrl, output = EncodedResponse)]
pub async fn bulk_unlocks(search: String) -> Result<BulkConfirmData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.bulk_unlocks(search).await)
}

#[cfg(test)]
mod tests;
