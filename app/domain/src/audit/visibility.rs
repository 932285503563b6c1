//! Audit entries that a reader may see.

use crate::access::{Grants, Permission};
use crate::lease::Scope;
use crate::names::BackendName;

/// `None`: all entries. Otherwise only entries about locks of one of these subjects; entries
/// about no lock (users, tokens) require unlimited access.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readable(Option<Vec<EntrySubject>>);

/// Locks of one grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntrySubject {
    /// `None`: all backends.
    pub backend: Option<BackendName>,
    pub names: Scope,
}

impl Readable {
    pub fn to(grants: &Grants) -> Self {
        let places = grants.places(Permission::AuditRead);
        let places = places.map(|(backend, names)| EntrySubject { backend, names });
        Self((!grants.may_everywhere(Permission::AuditRead)).then(|| places.collect()))
    }

    /// `None`: everything.
    pub fn places(&self) -> Option<&[EntrySubject]> {
        self.0.as_deref()
    }

    /// Whether an entry about this lock is readable. `resource` is its text form.
    pub fn covers(&self, backend: Option<&str>, resource: Option<&str>) -> bool {
        let Some(places) = &self.0 else { return true };
        places.iter().any(|place| {
            let is_on_backend = match (&place.backend, backend) {
                (None, _) => true,
                (Some(granted), Some(backend)) => granted.as_str() == backend,
                (Some(_), None) => false,
            };
            is_on_backend && resource.map_or(place.is_whole_backend(), |name| place.names.covers(name))
        })
    }
}

impl EntrySubject {
    /// Covers the whole backend, including entries without a resource.
    pub fn is_whole_backend(&self) -> bool {
        self.backend.is_some() && self.names.is_everything()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Grant, Role};

    fn readable(grants: &[(Role, Option<&str>, Option<&str>)]) -> Readable {
        let grants = grants.iter().map(|(role, backend, prefix)| Grant {
            role: *role,
            backend: backend.map(|name| BackendName::parse(name).unwrap()),
            prefix: prefix.map(str::to_owned),
        });
        Readable::to(&Grants::new(grants.collect()))
    }

    #[test]
    fn a_limited_grant_reads_only_entries_of_its_locks() {
        // One tenant, one backend, a role without the permission, an unlimited auditor.
        let tenant = readable(&[
            (Role::Auditor, None, Some("tenant_1")),
            (Role::Viewer, None, None),
        ]);
        assert!(tenant.covers(Some("cache"), Some("tenant_1:a")) && tenant.covers(None, Some("tenant_1")));
        assert!(!tenant.covers(Some("cache"), Some("tenant_12:a")) && !tenant.covers(None, None));
        let backend = readable(&[(Role::Auditor, Some("cache"), None)]);
        assert!(backend.covers(Some("cache"), Some("x")) && backend.covers(Some("cache"), None));
        assert!(!backend.covers(Some("db"), Some("x")) && !backend.covers(None, None));
        assert!(!readable(&[(Role::Viewer, None, None)]).covers(None, None));
        assert!(readable(&[(Role::Auditor, None, None)]).covers(None, None));
    }
}
