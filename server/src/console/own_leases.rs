//! Lease ids of the built-in service. The inventory does not carry them; a view gets the ids of the leases that belong to
//! its principal, and no others.

use std::collections::HashMap;

use domain::access::Right;
use domain::detail::LockDetail;
use domain::known::Known;
use domain::lock::Lock;
use domain::names::{BackendName, Resource};
use domain::observation::RawField;
use domain::token::FencingToken;

use super::{FRESH_PATIENCE, ServerConsole};

/// The grant of a resource: its token is issued once.
type Grant = (Resource, FencingToken);

impl ServerConsole {
    pub(super) async fn add_own_lease_ids(&self, locks: &mut [Lock]) {
        let builtin = BackendName::builtin();
        let names = locks.iter().filter(|lock| lock.id.backend == builtin);
        let names: Vec<Resource> = names.map(|lock| lock.id.resource.clone()).collect();
        let own = self.own_leases(&names).await;
        for lock in locks.iter_mut().filter(|lock| lock.id.backend == builtin) {
            if let Some(id) = own_lease(&own, lock) {
                lock.lease_id = Known::Known(id);
            }
        }
    }

    pub(super) async fn add_own_lease_id(&self, detail: &mut LockDetail) {
        self.add_own_lease_ids(std::slice::from_mut(&mut detail.lock))
            .await;
        if detail.lock.id.backend != BackendName::builtin() {
            return;
        }
        if let (Known::Known(id), Known::Known(fresh)) = (&detail.lock.lease_id, &mut detail.fresh) {
            let (name, value) = ("lease_id".to_owned(), id.clone());
            fresh.raw.insert(0, RawField { name, value });
        }
    }

    /// Without an answer in time none: the view says that ids are for their principal.
    async fn own_leases(&self, names: &[Resource]) -> HashMap<Grant, String> {
        let Some((who, sources)) = self.who.as_ref().zip(self.charts.as_ref()) else {
            return HashMap::new();
        };
        if names.is_empty() || !who.grants.may_anywhere(Right::Lease) {
            return HashMap::new();
        }
        let principal = who.lease_principal();
        let asked = sources.leases.held_of(names);
        let Ok(Ok(read)) = tokio::time::timeout(FRESH_PATIENCE, asked).await else {
            return HashMap::new();
        };
        let own = read.value.into_iter().filter(|row| principal.owns(&row.lease));
        own.map(|row| ((row.resource, row.lease.token), row.lease.id.to_string()))
            .collect()
    }
}

fn own_lease(own: &HashMap<Grant, String>, lock: &Lock) -> Option<String> {
    let token = *lock.fencing_token.known()?;
    own.get(&(lock.id.resource.clone(), token)).cloned()
}
