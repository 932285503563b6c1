//! Candidates for a bulk unlock: a list for selection only; each unlock reads its lock again.

use domain::access::Visible;
use domain::lock::Lock;
use domain::names::BackendName;
use domain::query::InventoryQuery;

use super::Unlocks;
use super::intent::may_unlock;
use super::limits::BULK_MAX;
use crate::identity::Principal;
use inventory::Cancellation;

/// Locks of one query, and queries at most: of many locks that are visible, few may be ones that the caller may unlock.
const PAGE: u32 = 500;
const PAGES_MAX: usize = 10;

/// Filters; an empty one matches everything.
#[derive(Debug, Clone, Default)]
pub struct CandidateFilter {
    pub backend: Option<BackendName>,
    pub prefix: String,
    pub owner: String,
}

#[derive(Debug, Clone, Default)]
pub struct BulkCandidates {
    /// The worst locks that the caller may see and unlock, at most the bulk limit.
    pub locks: Vec<Lock>,
    /// Number of visible locks that match.
    pub total: u64,
    /// Every backend that may have matches is read completely.
    pub is_complete: bool,
}

impl Unlocks {
    /// May read every name, several times: not on a thread of the runtime. Once cancelled, it returns early.
    pub fn find_candidates(
        &self,
        who: &Principal,
        filter: CandidateFilter,
        abandon: &Cancellation,
    ) -> BulkCandidates {
        let mut query = InventoryQuery {
            backends: filter.backend.into_iter().collect(),
            prefix: filter.prefix,
            owners: Some(filter.owner)
                .filter(|owner| !owner.is_empty())
                .into_iter()
                .collect(),
            limit: PAGE,
            visible: Visible::to(&who.grants),
            ..InventoryQuery::default()
        };
        let (now, mut found) = (self.clock.now(), BulkCandidates::default());
        for _ in 0..PAGES_MAX {
            // With a cursor of the page before and a fixed limit it cannot be invalid.
            let Ok(page) = self.inventory.page_unless(&query, now, abandon) else {
                break;
            };
            (found.total, found.is_complete) = (page.total, page.complete);
            let may = |lock: &Lock| may_unlock(who, &lock.id.backend, &lock.id.resource.text()).is_ok();
            found.locks.extend(page.locks.into_iter().filter(may));
            if found.locks.len() >= BULK_MAX || page.next_cursor.is_none() {
                break;
            }
            query.cursor = page.next_cursor;
        }
        found.locks.truncate(BULK_MAX);
        found
    }
}
