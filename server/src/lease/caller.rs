//! Who asks: until there is identity, everybody is [`Caller::open`].

use std::sync::Arc;

use domain::lease::{Lease, Scope};
use domain::names::Resource;

use super::error::LeaseError;

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The token's id: idempotency keys and lease ids belong to it.
    pub issuer: Arc<str>,
    pub scope: Scope,
    /// Sees every lease id.
    pub is_operator: bool,
}

impl Caller {
    pub fn open() -> Self {
        Self {
            issuer: "".into(),
            scope: Scope::everything(),
            is_operator: true,
        }
    }

    /// By name: outside of the scope is refused alike, held or not.
    pub(super) fn may_name(&self, resource: &Resource) -> Result<(), LeaseError> {
        if self.scope.covers(&resource.text()) {
            Ok(())
        } else {
            Err(LeaseError::OutOfScope)
        }
    }

    pub fn may_see_id_of(&self, lease: &Lease) -> bool {
        self.is_operator || self.issuer == lease.issuer
    }
}
