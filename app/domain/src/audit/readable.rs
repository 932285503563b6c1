//! Which rows of the record somebody may read.

use crate::access::{Grants, Right};
use crate::lease::Scope;
use crate::names::BackendName;

/// Everything, unless it was cut: then only rows about locks in one of these places. Rows about no lock, such as people
/// and tokens, are for those alone who may read everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readable(Option<Vec<Place>>);

/// Locks of one grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// None: on all of them.
    pub backend: Option<BackendName>,
    pub names: Scope,
}

impl Readable {
    pub fn to(grants: &Grants) -> Self {
        let places = grants.places(Right::AuditRead);
        let places = places.map(|(backend, names)| Place { backend, names });
        Self((!grants.may_everywhere(Right::AuditRead)).then(|| places.collect()))
    }

    /// None: everything.
    pub fn places(&self) -> Option<&[Place]> {
        self.0.as_deref()
    }

    /// A row about this lock. `resource` is its text form.
    pub fn covers(&self, backend: Option<&str>, resource: Option<&str>) -> bool {
        let Some(places) = &self.0 else { return true };
        places.iter().any(|place| {
            let is_there = match (&place.backend, backend) {
                (None, _) => true,
                (Some(own), Some(backend)) => own.as_str() == backend,
                (Some(_), None) => false,
            };
            is_there && resource.map_or(place.is_whole_backend(), |name| place.names.covers(name))
        })
    }
}

impl Place {
    /// All of one backend, so what is recorded of it under no name, too.
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
    fn a_cut_grant_reads_of_its_own_locks_and_of_nothing_else() {
        // One tenant, one backend, a role that may not read, an auditor of everything.
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
