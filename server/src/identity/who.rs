//! Who a request is from, and what they may do: the one value that handlers pass on.

use std::sync::Arc;

use domain::access::{Grants, Right, Role};
use domain::lease::Scope;
use domain::names::BackendName;

use super::sessions::Session;
use crate::audit::{Actor, Origin};
use crate::lease::LeasePrincipal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Anonymous,
    Person { id: Arc<str>, name: Arc<str> },
    Token { id: Arc<str>, name: Arc<str> },
}

impl Subject {
    pub fn id(&self) -> Arc<str> {
        match self {
            Self::Anonymous => ANONYMOUS.into(),
            Self::Person { id, .. } | Self::Token { id, .. } => id.clone(),
        }
    }
}

const ANONYMOUS: &str = "anonymous";
/// Of what the program does by itself, or at its own terminal.
pub const SYSTEM_ID: &str = "system";

/// Cheap to clone.
#[derive(Debug, Clone)]
pub struct Who {
    pub subject: Subject,
    pub grants: Arc<Grants>,
    /// Of a person who came with a cookie.
    pub session: Option<Arc<Session>>,
    /// Authenticated within the last 15 minutes; never a token.
    pub is_fresh: bool,
    pub origin: Origin,
    /// Of a token: ids of the tokens that it succeeds, the latest first. Their leases are its own.
    pub predecessors: Arc<[Arc<str>]>,
    /// Nobody may change anything for now.
    pub read_only: bool,
    /// No server evaluates the alert rules: pages say so.
    pub alerts_overdue: bool,
}

impl Who {
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

    /// What the program does by itself, or at its own terminal.
    pub fn system(name: &str) -> Self {
        Self {
            subject: Subject::Person {
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
            Subject::Person { id, .. } | Subject::Token { id, .. } => id,
        }
    }

    pub fn name(&self) -> &str {
        match &self.subject {
            Subject::Anonymous => ANONYMOUS,
            Subject::Person { name, .. } | Subject::Token { name, .. } => name,
        }
    }

    /// As the lease service knows them.
    pub fn lease_principal(&self) -> LeasePrincipal {
        LeasePrincipal {
            id: self.subject.id(),
            predecessors: self.predecessors.clone(),
        }
    }

    /// Somewhere at least, and not while everything is read-only.
    pub fn may_anywhere(&self, right: Right) -> bool {
        !self.is_blocked(right) && self.grants.may_anywhere(right)
    }

    pub fn may(&self, right: Right, backend: &BackendName, resource: &str) -> bool {
        !self.is_blocked(right) && self.grants.may(right, backend, resource)
    }

    pub fn scope_on(&self, right: Right, backend: &BackendName) -> Scope {
        self.grants.scope_on(right, backend)
    }

    /// Leases go on: a console that may not be changed must not end the work of others. And whoever throws the switch
    /// must be able to throw it back.
    fn is_blocked(&self, right: Right) -> bool {
        self.read_only && matches!(right, Right::Unlock | Right::Approve)
    }

    /// For the record; `role` is the one by which it was allowed.
    pub fn actor(&self, role: Option<Role>) -> Actor {
        Actor {
            id: self.id().to_owned(),
            name: self.name().to_owned(),
            role: role.map(|role| role.wire().to_owned()),
        }
    }
}
