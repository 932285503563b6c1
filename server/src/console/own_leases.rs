//! Lease ids of the built-in service. The inventory does not carry them; a view gets the ids of its own principal's
//! leases only.

use std::collections::HashMap;

use domain::access::Permission;
use domain::lock::Lock;
use domain::lock_detail::LockDetail;
use domain::names::{BackendName, Resource};
use domain::observation::RawField;
use domain::reported::Reported;
use domain::token::FencingToken;

use super::ServerConsole;
use super::fresh_read::FRESH_READ_TIMEOUT;

/// The grant of a resource; its token is unique.
type Grant = (Resource, FencingToken);

impl ServerConsole {
    pub(super) async fn add_own_lease_ids(&self, locks: &mut [Lock]) {
        let builtin = BackendName::builtin();
        let names = locks.iter().filter(|lock| lock.id.backend == builtin);
        let names: Vec<Resource> = names.map(|lock| lock.id.resource.clone()).collect();
        let own_ids = self.own_leases(&names).await;
        for lock in locks.iter_mut().filter(|lock| lock.id.backend == builtin) {
            if let Some(id) = own_lease(&own_ids, lock) {
                lock.lease_id = Reported::Value(id);
            }
        }
    }

    pub(super) async fn add_own_lease_id(&self, detail: &mut LockDetail) {
        self.add_own_lease_ids(std::slice::from_mut(&mut detail.lock))
            .await;
        if detail.lock.id.backend != BackendName::builtin() {
            return;
        }
        if let (Reported::Value(id), Reported::Value(fresh)) = (&detail.lock.lease_id, &mut detail.fresh) {
            let (name, value) = ("lease_id".to_owned(), id.clone());
            fresh.raw.insert(0, RawField { name, value });
        }
    }

    /// Empty if there is no answer in time: the view then states that ids are for their principal.
    async fn own_leases(&self, names: &[Resource]) -> HashMap<Grant, String> {
        let Some((who, sources)) = self.who.as_ref().zip(self.charts.as_ref()) else {
            return HashMap::new();
        };
        if names.is_empty() || !who.grants.may_anywhere(Permission::Lease) {
            return HashMap::new();
        }
        let principal = who.lease_principal();
        let reading = sources.leases.held_by_names(names);
        let Ok(found) = tokio::time::timeout(FRESH_READ_TIMEOUT, reading).await else {
            return HashMap::new();
        };
        let held = found.reads.into_iter().flat_map(|read| read.value);
        let own_rows = held.filter(|row| principal.owns(&row.lease));
        own_rows
            .map(|row| ((row.resource, row.lease.token), row.lease.id.to_string()))
            .collect()
    }
}

fn own_lease(own_ids: &HashMap<Grant, String>, lock: &Lock) -> Option<String> {
    let token = *lock.fencing_token.known()?;
    own_ids.get(&(lock.id.resource.clone(), token)).cloned()
}
