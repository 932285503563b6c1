//! Candidates for a bulk unlock: a list for selection only; each unlock reads its lock again.

use domain::access::Visible;
use domain::lock::Lock;
use domain::names::BackendName;
use domain::query::InventoryQuery;

use super::Unlocks;
use super::intent::may_unlock;
use super::limits::BULK_MAX;
use crate::identity::Principal;

/// Filters; an empty one matches everything.
#[derive(Debug, Clone, Default)]
pub struct Narrowed {
    pub backend: Option<BackendName>,
    pub prefix: String,
    pub owner: String,
}

impl Unlocks {
    /// The worst locks that the caller may see and unlock, at most the bulk limit; and the number of visible locks
    /// that match.
    pub fn choice(&self, who: &Principal, narrowed: Narrowed) -> (Vec<Lock>, u64) {
        let query = InventoryQuery {
            backends: narrowed.backend.into_iter().collect(),
            prefix: narrowed.prefix,
            owners: Some(narrowed.owner)
                .filter(|owner| !owner.is_empty())
                .into_iter()
                .collect(),
            limit: u32::try_from(BULK_MAX).unwrap_or(u32::MAX),
            visible: Visible::to(&who.grants),
            ..InventoryQuery::default()
        };
        // A query without cursor and limit cannot be invalid.
        let Ok(page) = self.inventory.page(&query, self.clock.now()) else {
            return (Vec::new(), 0);
        };
        let mut locks = page.locks;
        locks.retain(|lock| may_unlock(who, &lock.id.backend, &lock.id.resource.text()).is_ok());
        (locks, page.total)
    }
}
