//! What may be ticked for several unlocks at once: a list for looking at, never what is acted on.

use domain::access::Visible;
use domain::lock::Lock;
use domain::names::BackendName;
use domain::query::InventoryQuery;

use super::Unlocks;
use super::intent::may_unlock;
use super::limits::BULK_MAX;
use crate::identity::Who;

/// What the list is narrowed to. Empty: not at all.
#[derive(Debug, Clone, Default)]
pub struct Narrowed {
    pub backend: Option<BackendName>,
    pub prefix: String,
    pub owner: String,
}

impl Unlocks {
    /// Worst first, as many as may be unlocked at once, of those that the caller sees and may unlock; and as many as match
    /// of those that they see.
    pub fn choice(&self, who: &Who, narrowed: Narrowed) -> (Vec<Lock>, u64) {
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
        // Without a cursor and a number in the query there is nothing in it to be wrong.
        let Ok(page) = self.inventory.page(&query, self.clock.now()) else {
            return (Vec::new(), 0);
        };
        let mut locks = page.locks;
        locks.retain(|lock| may_unlock(who, &lock.id.backend, &lock.id.resource.text()).is_ok());
        (locks, page.total)
    }
}
