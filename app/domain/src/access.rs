//! Who may do what: roles, the rights they bring, and grants that bind a role to backends and prefixes.
//!
//! **Invariant:** [`Role::rights`] is the one table of rights: checks, hidden controls and the documentation read it.

use serde::{Deserialize, Serialize};

use crate::lease::Scope;
use crate::names::BackendName;

/// What can be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Right {
    /// See locks, prefixes and backends.
    View,
    /// Hold leases of the built-in service: acquire, renew, release, check tokens, report rejections.
    Lease,
    /// Begin and confirm a forced unlock.
    Unlock,
    /// Approve a forced unlock of somebody else.
    Approve,
    /// Read and export the audit record; with a grant that is cut, as far as it is about those locks.
    AuditRead,
    /// People, roles, tokens, sessions, tiers, the read-only switch.
    Administer,
}

impl Right {
    pub const ALL: [Self; 6] = [
        Self::View,
        Self::Lease,
        Self::Unlock,
        Self::Approve,
        Self::AuditRead,
        Self::Administer,
    ];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::View => "view",
            Self::Lease => "lease",
            Self::Unlock => "unlock",
            Self::Approve => "approve",
            Self::AuditRead => "audit_read",
            Self::Administer => "administer",
        }
    }

    /// It changes something: refused while the console is read-only.
    pub const fn mutates(self) -> bool {
        match self {
            Self::View | Self::AuditRead => false,
            Self::Lease | Self::Unlock | Self::Approve | Self::Administer => true,
        }
    }

    /// It is about the console as a whole: a grant that is cut to a backend or a prefix does not bring it.
    pub const fn is_global(self) -> bool {
        matches!(self, Self::Administer)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    /// A program that holds leases, and may do nothing else.
    Client,
    Operator,
    Approver,
    Auditor,
    Admin,
}

impl Role {
    pub const ALL: [Self; 6] = [
        Self::Viewer,
        Self::Client,
        Self::Operator,
        Self::Approver,
        Self::Auditor,
        Self::Admin,
    ];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Client => "client",
            Self::Operator => "operator",
            Self::Approver => "approver",
            Self::Auditor => "auditor",
            Self::Admin => "admin",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.wire() == word)
    }

    pub const fn rights(self) -> &'static [Right] {
        match self {
            Self::Viewer => &[Right::View],
            Self::Client => &[Right::View, Right::Lease],
            Self::Operator => &[Right::View, Right::Lease, Right::Unlock],
            Self::Approver => &[Right::View, Right::Approve],
            Self::Auditor => &[Right::View, Right::AuditRead],
            Self::Admin => &Right::ALL,
        }
    }
}

/// One role, on some backends and prefixes. Absent means all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub role: Role,
    pub backend: Option<BackendName>,
    /// On whole segments: `tenant_1` covers `tenant_1` and `tenant_1:x`, not `tenant_12`.
    pub prefix: Option<String>,
}

impl Grant {
    pub const fn everywhere(role: Role) -> Self {
        Self {
            role,
            backend: None,
            prefix: None,
        }
    }

    pub fn is_global(&self) -> bool {
        self.backend.is_none() && self.prefix.is_none()
    }

    fn brings(&self, right: Right) -> bool {
        self.role.rights().contains(&right) && (!right.is_global() || self.is_global())
    }

    fn covers_backend(&self, backend: &BackendName) -> bool {
        self.backend.as_ref().is_none_or(|own| own == backend)
    }

    fn scope(&self) -> Scope {
        match &self.prefix {
            None => Scope::everything(),
            Some(prefix) => Scope::prefixes([prefix.clone()]),
        }
    }
}

/// All that somebody was granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants(Vec<Grant>);

impl Grants {
    pub fn new(grants: Vec<Grant>) -> Self {
        Self(grants)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Somewhere at least: a page may be opened, its content is cut to the scope.
    pub fn may_anywhere(&self, right: Right) -> bool {
        self.0.iter().any(|grant| grant.brings(right))
    }

    /// Everywhere, without a bound.
    pub fn may_everywhere(&self, right: Right) -> bool {
        self.0
            .iter()
            .any(|grant| grant.brings(right) && grant.is_global())
    }

    /// On this lock. `resource` is its text form.
    pub fn may(&self, right: Right, backend: &BackendName, resource: &str) -> bool {
        self.role_for(right, backend, resource).is_some()
    }

    /// The role by which it is allowed, for the record.
    pub fn role_for(&self, right: Right, backend: &BackendName, resource: &str) -> Option<Role> {
        let fits = |grant: &&Grant| {
            grant.brings(right) && grant.covers_backend(backend) && grant.scope().covers(resource)
        };
        self.0.iter().find(fits).map(|grant| grant.role)
    }

    /// Where the right holds: backend and names of each grant that brings it. No backend: on all of them.
    pub fn places(&self, right: Right) -> impl Iterator<Item = (Option<BackendName>, Scope)> {
        let bringing = self.0.iter().filter(move |grant| grant.brings(right));
        bringing.map(|grant| (grant.backend.clone(), grant.scope()))
    }

    /// Names on which the right holds whatever the backend: grants that are cut to a backend do not count.
    pub fn scope_on_every_backend(&self, right: Right) -> Scope {
        let mut prefixes = Vec::new();
        for grant in self.0.iter().filter(|grant| grant.brings(right)) {
            match (&grant.backend, &grant.prefix) {
                (Some(_), _) => {}
                (None, None) => return Scope::everything(),
                (None, Some(prefix)) => prefixes.push(prefix.clone()),
            }
        }
        Scope::prefixes(prefixes)
    }

    /// Names of one backend on which the right holds.
    pub fn scope_on(&self, right: Right, backend: &BackendName) -> Scope {
        let fitting = |grant: &&Grant| grant.brings(right) && grant.covers_backend(backend);
        let mut prefixes = Vec::new();
        for grant in self.0.iter().filter(fitting) {
            match &grant.prefix {
                None => return Scope::everything(),
                Some(prefix) => prefixes.push(prefix.clone()),
            }
        }
        Scope::prefixes(prefixes)
    }
}

/// Names that somebody may see, backend by backend. Everything, unless it was cut.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Visible(Option<Grants>);

impl Visible {
    pub fn to(grants: &Grants) -> Self {
        Self((!grants.may_everywhere(Right::View)).then(|| grants.clone()))
    }

    pub const fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    pub fn on(&self, backend: &BackendName) -> Scope {
        match &self.0 {
            None => Scope::everything(),
            Some(grants) => grants.scope_on(Right::View, backend),
        }
    }

    /// Names that may be seen whatever their backend.
    pub fn on_every_backend(&self) -> Scope {
        match &self.0 {
            None => Scope::everything(),
            Some(grants) => grants.scope_on_every_backend(Right::View),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(role: Role, backend: Option<&str>, prefix: Option<&str>) -> Grant {
        Grant {
            role,
            backend: backend.map(|name| BackendName::parse(name).unwrap()),
            prefix: prefix.map(str::to_owned),
        }
    }

    fn backend(name: &str) -> BackendName {
        BackendName::parse(name).unwrap()
    }

    #[test]
    fn a_grant_ends_at_its_backend_and_at_whole_segments() {
        // One operator of one tenant on one backend: the neighbours in name and in place are not theirs.
        let grants = Grants::new(vec![grant(Role::Operator, Some("db"), Some("tenant_1"))]);
        let may = |backend: &str, resource: &str| {
            grants.may(Right::Unlock, &BackendName::parse(backend).unwrap(), resource)
        };
        assert!(may("db", "tenant_1") && may("db", "tenant_1:x") && may("db", "tenant_1/x"));
        assert!(!may("db", "tenant_12:x") && !may("db", "tenantX1:x") && !may("cache", "tenant_1:x"));
    }

    #[test]
    fn global_rights_need_a_grant_without_bounds() {
        // An admin of one prefix administers nothing, and reads what is recorded there; an admin everywhere does all.
        let bounded = Grants::new(vec![grant(Role::Admin, None, Some("tenant_1"))]);
        assert!(!bounded.may_anywhere(Right::Administer));
        assert!(bounded.may_anywhere(Right::AuditRead) && !bounded.may_everywhere(Right::AuditRead));
        assert!(bounded.may(Right::Unlock, &backend("db"), "tenant_1:x"));
        let everywhere = Grants::new(vec![Grant::everywhere(Role::Admin)]);
        assert!(
            Right::ALL
                .into_iter()
                .all(|right| everywhere.may_everywhere(right))
        );
    }

    #[test]
    fn scopes_add_up_and_one_without_bounds_is_everything() {
        // Two prefixes of one right; a third grant of another right adds nothing; a global one takes the bounds away.
        let mut all = vec![
            grant(Role::Client, None, Some("a:")),
            grant(Role::Client, Some("builtin"), Some("b")),
            grant(Role::Viewer, None, Some("c")),
        ];
        let scope = Grants::new(all.clone()).scope_on(Right::Lease, &BackendName::builtin());
        assert!(scope.covers("a:1") && scope.covers("b") && !scope.covers("c"));
        all.push(Grant::everywhere(Role::Operator));
        assert!(
            Grants::new(all)
                .scope_on(Right::Lease, &BackendName::builtin())
                .covers("c")
        );
        assert!(
            !Grants::default()
                .scope_on(Right::Lease, &BackendName::builtin())
                .covers("a")
        );
    }

    #[test]
    fn no_role_but_admin_has_every_right_and_each_right_has_a_role() {
        // The table as documented: rights that only reading roles have must not mutate.
        for right in Right::ALL {
            assert!(Role::ALL.into_iter().any(|role| role.rights().contains(&right)));
        }
        for role in [Role::Viewer, Role::Auditor] {
            assert!(role.rights().iter().all(|right| !right.mutates()));
        }
        for role in Role::ALL {
            assert_eq!(Role::parse(role.wire()), Some(role));
            assert_eq!(role.rights().len() == Right::ALL.len(), role == Role::Admin);
        }
    }
}
