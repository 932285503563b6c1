//! The principal of a request and its permissions: the one value that handlers pass on.

use std::sync::Arc;

use domain::access::{Grants, Permission, Role};
use domain::lease::Scope;
use domain::names::BackendName;

use super::sessions::Session;
use crate::audit::{ANONYMOUS, Actor, Origin};
use lease::LeasePrincipal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Anonymous,
    User { id: Arc<str>, name: Arc<str> },
    Token { id: Arc<str>, name: Arc<str> },
}

impl Subject {
    pub fn id(&self) -> Arc<str> {
        match self {
            Self::Anonymous => ANONYMOUS.into(),
            Self::User { id, .. } | Self::Token { id, .. } => id.clone(),
        }
    }
}

/// Id for automatic operations and commands on the server.
pub const SYSTEM_ID: &str = "system";

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Principal {
    pub subject: Subject,
    pub grants: Arc<Grants>,
    /// Session of a user with a cookie.
    pub session: Option<Arc<Session>>,
    /// Authenticated within the last 15 minutes; never a token.
    pub is_fresh: bool,
    pub origin: Origin,
    /// Ids of the predecessors of a token, the latest first. It owns their leases.
    pub predecessors: Arc<[Arc<str>]>,
    /// The console is read-only.
    pub read_only: bool,
    /// No server evaluates the alert rules; pages show a notice.
    pub alerts_overdue: bool,
}

impl Principal {
    pub fn anonymous(origin: Origin) -> Self {
        Self {
            subject: Subject::Anonymous,
            grants: Arc::default(),
            session: None,
            is_fresh: false,
            origin,
            predecessors: Arc::default(),
            read_only: false,
            alerts_overdue: false,
        }
    }

    /// Automatic operations and commands on the server.
    pub fn system(name: &str) -> Self {
        Self {
            subject: Subject::User {
                id: SYSTEM_ID.into(),
                name: name.into(),
            },
            grants: Arc::new(Grants::new(vec![domain::access::Grant::everywhere(Role::Admin)])),
            session: None,
            is_fresh: false,
            origin: Origin::default(),
            predecessors: Arc::default(),
            read_only: false,
            alerts_overdue: false,
        }
    }

    pub fn is_anonymous(&self) -> bool {
        self.subject == Subject::Anonymous
    }

    pub fn is_token(&self) -> bool {
        matches!(self.subject, Subject::Token { .. })
    }

    pub fn id(&self) -> &str {
        match &self.subject {
            Subject::Anonymous => ANONYMOUS,
            Subject::User { id, .. } | Subject::Token { id, .. } => id,
        }
    }

    pub fn name(&self) -> &str {
        match &self.subject {
            Subject::Anonymous => ANONYMOUS,
            Subject::User { name, .. } | Subject::Token { name, .. } => name,
        }
    }

    /// The principal for the lease service.
    pub fn lease_principal(&self) -> LeasePrincipal {
        LeasePrincipal {
            id: self.subject.id(),
            predecessors: self.predecessors.clone(),
        }
    }

    /// Whether it has the permission anywhere, and the console is not read-only.
    pub fn may_anywhere(&self, right: Permission) -> bool {
        !self.is_blocked(right) && self.grants.may_anywhere(right)
    }

    pub fn may(&self, right: Permission, backend: &BackendName, resource: &str) -> bool {
        !self.is_blocked(right) && self.grants.may(right, backend, resource)
    }

    pub fn scope_on(&self, right: Permission, backend: &BackendName) -> Scope {
        self.grants.scope_on(right, backend)
    }

    /// Read-only does not apply to leases, which must continue, nor to the switch itself.
    fn is_blocked(&self, right: Permission) -> bool {
        self.read_only && matches!(right, Permission::Unlock | Permission::Approve)
    }

    /// Actor of audit entries; `role` is the one that allowed the operation.
    pub fn actor(&self, role: Option<Role>) -> Actor {
        Actor {
            id: self.id().to_owned(),
            name: self.name().to_owned(),
            role: role.map(|role| role.as_str().to_owned()),
        }
    }
}
