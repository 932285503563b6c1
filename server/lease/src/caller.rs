//! The principal of a request to the lease service, and which leases are its own.

use std::sync::Arc;

use domain::lease::{Lease, Scope, names};
use domain::names::Resource;

use super::error::LeaseError;

/// Issuer of the leases that the server acquires for itself. Ids of users and tokens are random
/// and never equal it.
const SERVER: &str = "leasehold";

/// The principal that acquired a lease, and the principals whose leases it inherits. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeasePrincipal {
    /// Id of the user or of the API token; leases and idempotency keys carry it.
    pub id: Arc<str>,
    /// Ids of the tokens that this one succeeds, the latest first. Empty for users and for most tokens.
    pub predecessors: Arc<[Arc<str>]>,
}

impl LeasePrincipal {
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self {
            id: id.into(),
            predecessors: Arc::default(),
        }
    }

    /// Whether this principal, or one that it succeeds, acquired the lease.
    pub fn owns(&self, lease: &Lease) -> bool {
        self.id == lease.issuer || self.predecessors.contains(&lease.issuer)
    }
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct LeaseCaller {
    pub principal: LeasePrincipal,
    pub scope: Scope,
}

impl LeaseCaller {
    /// Every request of a server without sign-in: all of them are one principal.
    pub fn open() -> Self {
        Self {
            principal: LeasePrincipal::new(""),
            scope: Scope::everything(),
        }
    }

    /// The server itself.
    pub fn server() -> Self {
        Self {
            principal: LeasePrincipal::new(SERVER),
            scope: Scope::everything(),
        }
    }

    /// Names below `leasehold/` are reserved for the server: a client holding one could block
    /// the server's singleton tasks.
    pub(super) fn may_acquire(&self, resource: &Resource) -> Result<(), LeaseError> {
        if names::is_reserved(&resource.text()) && *self.principal.id != *SERVER {
            return Err(LeaseError::Reserved);
        }
        self.may_name(resource)
    }

    /// By name: outside of the scope the answer is the same whether or not the resource is held.
    pub(super) fn may_name(&self, resource: &Resource) -> Result<(), LeaseError> {
        if self.scope.covers(&resource.text()) {
            Ok(())
        } else {
            Err(LeaseError::OutOfScope)
        }
    }

    /// By lease id: a lease of another principal is answered like an unknown id.
    pub(super) fn may_use(&self, resource: &Resource, lease: &Lease) -> Result<(), LeaseError> {
        if self.scope.covers(&resource.text()) && self.principal.owns(lease) {
            Ok(())
        } else {
            Err(LeaseError::NotFound)
        }
    }
}
