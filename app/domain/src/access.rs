//! Roles, their permissions, and grants that bind a role to backends and prefixes.
//!
//! **Invariant:** [`Role::rights`] is the only table of permissions: checks, hidden controls
//! and the documentation read it.

use serde::{Deserialize, Serialize};

use crate::lease::Scope;
use crate::names::BackendName;

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Permission {
        /// See locks, prefixes and backends.
        View = "view",
        /// Hold leases of the built-in service: acquire, renew, release, check tokens, report rejections.
        Lease = "lease",
        /// Begin and confirm a forced unlock.
        Unlock = "unlock",
        /// Approve a forced unlock that another user requested.
        Approve = "approve",
        /// Read and export the audit log. A grant limited to a backend or prefix covers only
        /// entries about its locks.
        AuditRead = "audit_read",
        /// Users, roles, tokens, sessions, protected prefixes, the read-only switch.
        Administer = "administer",
    }
}

impl Permission {
    /// Whether requests that need this permission change something.
    pub const fn mutates(self) -> bool {
        match self {
            Self::View | Self::AuditRead => false,
            Self::Lease | Self::Unlock | Self::Approve | Self::Administer => true,
        }
    }

    /// Permissions about the console as a whole. A grant limited to a backend or a prefix does
    /// not include them.
    pub const fn is_global(self) -> bool {
        matches!(self, Self::Administer)
    }
}

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Role {
        Viewer = "viewer",
        /// A program that holds leases; no other permission.
        Client = "client",
        Operator = "operator",
        Approver = "approver",
        Auditor = "auditor",
        Admin = "admin",
    }
}

impl Role {
    pub const fn rights(self) -> &'static [Permission] {
        match self {
            Self::Viewer => &[Permission::View],
            Self::Client => &[Permission::View, Permission::Lease],
            Self::Operator => &[Permission::View, Permission::Lease, Permission::Unlock],
            Self::Approver => &[Permission::View, Permission::Approve],
            Self::Auditor => &[Permission::View, Permission::AuditRead],
            Self::Admin => &Permission::ALL,
        }
    }
}

/// One role on some backends and prefixes. `None` means all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    pub role: Role,
    pub backend: Option<BackendName>,
    /// Matches whole segments: `tenant_1` covers `tenant_1` and `tenant_1:x`, not `tenant_12`.
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

    fn includes(&self, right: Permission) -> bool {
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

/// All grants of one principal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants(Vec<Grant>);

impl Grants {
    pub fn new(grants: Vec<Grant>) -> Self {
        Self(grants)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Grant> {
        self.0.iter()
    }

    /// Granted for at least one lock: the page opens and shows only what is in scope.
    pub fn may_anywhere(&self, right: Permission) -> bool {
        self.0.iter().any(|grant| grant.includes(right))
    }

    /// Granted without a limit to backends or prefixes.
    pub fn may_everywhere(&self, right: Permission) -> bool {
        self.0
            .iter()
            .any(|grant| grant.includes(right) && grant.is_global())
    }

    /// Granted for this lock. `resource` is its text form.
    pub fn may(&self, right: Permission, backend: &BackendName, resource: &str) -> bool {
        self.role_for(right, backend, resource).is_some()
    }

    /// The role that grants the permission; recorded in the audit log.
    pub fn role_for(&self, right: Permission, backend: &BackendName, resource: &str) -> Option<Role> {
        let fits = |grant: &&Grant| {
            grant.includes(right) && grant.covers_backend(backend) && grant.scope().covers(resource)
        };
        self.0.iter().find(fits).map(|grant| grant.role)
    }

    /// Backend and prefix of each grant that includes the permission. No backend: all backends.
    pub fn places(&self, right: Permission) -> impl Iterator<Item = (Option<BackendName>, Scope)> {
        let grants = self.0.iter().filter(move |grant| grant.includes(right));
        grants.map(|grant| (grant.backend.clone(), grant.scope()))
    }

    /// Names covered on every backend: grants limited to one backend do not count.
    pub fn scope_on_every_backend(&self, right: Permission) -> Scope {
        let mut prefixes = Vec::new();
        for grant in self.0.iter().filter(|grant| grant.includes(right)) {
            match (&grant.backend, &grant.prefix) {
                (Some(_), _) => {}
                (None, None) => return Scope::everything(),
                (None, Some(prefix)) => prefixes.push(prefix.clone()),
            }
        }
        Scope::prefixes(prefixes)
    }

    /// Names of one backend that the permission covers.
    pub fn scope_on(&self, right: Permission, backend: &BackendName) -> Scope {
        let fitting = |grant: &&Grant| grant.includes(right) && grant.covers_backend(backend);
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

/// Names that a principal may see, per backend. `None` means no limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Visible(Option<Grants>);

impl Visible {
    pub fn to(grants: &Grants) -> Self {
        Self((!grants.may_everywhere(Permission::View)).then(|| grants.clone()))
    }

    pub const fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    pub fn on(&self, backend: &BackendName) -> Scope {
        match &self.0 {
            None => Scope::everything(),
            Some(grants) => grants.scope_on(Permission::View, backend),
        }
    }

    /// Names that are visible on every backend.
    pub fn on_every_backend(&self) -> Scope {
        match &self.0 {
            None => Scope::everything(),
            Some(grants) => grants.scope_on_every_backend(Permission::View),
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
        // An operator of one tenant on one backend has no permission on similar names or on
        // other backends.
        let grants = Grants::new(vec![grant(Role::Operator, Some("db"), Some("tenant_1"))]);
        let may = |backend: &str, resource: &str| {
            grants.may(
                Permission::Unlock,
                &BackendName::parse(backend).unwrap(),
                resource,
            )
        };
        assert!(may("db", "tenant_1") && may("db", "tenant_1:x") && may("db", "tenant_1/x"));
        assert!(!may("db", "tenant_12:x") && !may("db", "tenantX1:x") && !may("cache", "tenant_1:x"));
    }

    #[test]
    fn global_permissions_need_an_unlimited_grant() {
        // An admin of one prefix has no global permission and reads only the audit entries of
        // that prefix; an unlimited admin has all.
        let bounded = Grants::new(vec![grant(Role::Admin, None, Some("tenant_1"))]);
        assert!(!bounded.may_anywhere(Permission::Administer));
        assert!(
            bounded.may_anywhere(Permission::AuditRead) && !bounded.may_everywhere(Permission::AuditRead)
        );
        assert!(bounded.may(Permission::Unlock, &backend("db"), "tenant_1:x"));
        let everywhere = Grants::new(vec![Grant::everywhere(Role::Admin)]);
        assert!(
            Permission::ALL
                .into_iter()
                .all(|right| everywhere.may_everywhere(right))
        );
    }

    #[test]
    fn scopes_add_up_and_an_unlimited_grant_covers_all() {
        // Two prefixes of one permission; a grant of another permission adds nothing; an
        // unlimited one removes the limits.
        let mut all = vec![
            grant(Role::Client, None, Some("a:")),
            grant(Role::Client, Some("builtin"), Some("b")),
            grant(Role::Viewer, None, Some("c")),
        ];
        let scope = Grants::new(all.clone()).scope_on(Permission::Lease, &BackendName::builtin());
        assert!(scope.covers("a:1") && scope.covers("b") && !scope.covers("c"));
        all.push(Grant::everywhere(Role::Operator));
        assert!(
            Grants::new(all)
                .scope_on(Permission::Lease, &BackendName::builtin())
                .covers("c")
        );
        assert!(
            !Grants::default()
                .scope_on(Permission::Lease, &BackendName::builtin())
                .covers("a")
        );
    }

    #[test]
    fn only_admin_has_every_permission_and_each_has_a_role() {
        // As documented: a permission of a read-only role must not mutate.
        for right in Permission::ALL {
            assert!(Role::ALL.into_iter().any(|role| role.rights().contains(&right)));
        }
        for role in [Role::Viewer, Role::Auditor] {
            assert!(role.rights().iter().all(|right| !right.mutates()));
        }
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
            assert_eq!(role.rights().len() == Permission::ALL.len(), role == Role::Admin);
        }
    }
}
