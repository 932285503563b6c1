//! Protection level of a forced unlock, and its reason: from the name of the lock and from its casualties.
//!
//! Owns the comparison of a blast radius with the rules; the rules are in `protected_prefixes`.

use std::collections::HashSet;

use domain::access::{Grants, Permission};
use domain::force_release::{BlastRadius, CasualtyKind};
use domain::names::{BackendName, Resource};
use domain::unlock::{ProtectionLevel, ProtectionReason, Unlock};

use super::protected_prefixes::{self, ProtectedPrefix};
use super::{UnlockError, Unlocks, seen_by};
use crate::identity::Principal;

/// The strictest level of a lock and its casualties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Protection {
    pub(super) level: ProtectionLevel,
    /// `None` if the level is `standard`.
    pub(super) reason: Option<ProtectionReason>,
    /// Every protected lock that would be released as well.
    casualties: Vec<String>,
}

impl Protection {
    const STANDARD: Self = Self {
        level: ProtectionLevel::Standard,
        reason: None,
        casualties: Vec::new(),
    };

    pub(super) fn is_protected(&self) -> bool {
        self.level == ProtectionLevel::Protected
    }

    /// The stricter of two; `self` if they are equal.
    fn or_stricter(self, other: Self) -> Self {
        if other.level > self.level { other } else { self }
    }

    /// Whether grants cover every protected name here.
    pub(super) fn may_be_approved_with(&self, grants: &Grants, unlock: &Unlock) -> bool {
        let may = |name: &str| grants.may(Permission::Approve, &unlock.backend, name);
        let is_unnamed = self.reason == Some(ProtectionReason::UnnamedCasualty);
        may(&unlock.resource.text())
            && self.casualties.iter().all(|name| may(name))
            && (!is_unnamed
                || grants
                    .scope_on(Permission::Approve, &unlock.backend)
                    .is_everything())
    }

    /// Checks that the principal may approve the unlock, or review it afterwards, apart from its independence.
    ///
    /// # Errors
    /// The permission is missing on the lock or on a protected lock here.
    pub(super) fn check_approver(&self, who: &Principal, unlock: &Unlock) -> Result<(), UnlockError> {
        if !who.may(Permission::Approve, &unlock.backend, &unlock.resource.text()) {
            return Err(UnlockError::forbidden(
                "this needs the permission `approve` on this resource",
            ));
        }
        if !self.may_be_approved_with(&who.grants, unlock) {
            let why = self.why(who, &unlock.backend);
            let missing = format!("this needs the permission `approve` on every protected lock here: {why}");
            return Err(UnlockError::forbidden(missing));
        }
        Ok(())
    }

    /// Why more than a confirmation is needed, without a name that the reader may not see.
    pub(super) fn why(&self, who: &Principal, backend: &BackendName) -> String {
        let reason = seen_by(who, backend, self.reason.clone());
        reason.unwrap_or(ProtectionReason::Resource).to_string()
    }
}

/// The protection of one lock. Without a radius all casualties count as unnamed. Pure.
pub(super) fn protection_of_lock(
    rules: &[ProtectedPrefix],
    backend: &BackendName,
    resource: &Resource,
    radius: Option<&BlastRadius>,
) -> Protection {
    let is_protected =
        |name: &str| protected_prefixes::strictest(rules, backend, name) == ProtectionLevel::Protected;
    let casualty_names = radius
        .into_iter()
        .flat_map(|radius| &radius.dies)
        .filter_map(|casualty| casualty.resource.as_ref().map(Resource::text));
    let casualties: Vec<String> = casualty_names.filter(|name| is_protected(name)).collect();
    let is_complete = radius.is_some_and(|radius| !has_unnamed(radius));
    let reason = match casualties.first() {
        _ if is_protected(&resource.text()) => ProtectionReason::Resource,
        Some(name) => ProtectionReason::Casualty {
            resource: Some(name.clone()),
        },
        None if !is_complete
            && protected_prefixes::strictest_of_backend(rules, backend) == ProtectionLevel::Protected =>
        {
            ProtectionReason::UnnamedCasualty
        }
        None => return Protection::STANDARD,
    };
    Protection {
        level: ProtectionLevel::Protected,
        reason: Some(reason),
        casualties,
    }
}

/// As recorded, or stricter by these rules. Pure.
pub(super) fn protection_of_unlock(
    rules: &[ProtectedPrefix],
    unlock: &Unlock,
    radius: &BlastRadius,
) -> Protection {
    let recorded = Protection {
        level: unlock.protection,
        casualties: unlock
            .protection_reason
            .as_ref()
            .and_then(|reason| reason.casualty().map(str::to_owned))
            .into_iter()
            .collect(),
        // Intents without a stored reason.
        reason: unlock
            .protection_reason
            .clone()
            .or((unlock.protection == ProtectionLevel::Protected).then_some(ProtectionReason::Resource)),
    };
    protection_of_lock(rules, &unlock.backend, &unlock.resource, Some(radius)).or_stricter(recorded)
}

/// Also true for intents stored without names.
fn has_unnamed(radius: &BlastRadius) -> bool {
    let is_lock = |kind| matches!(kind, CasualtyKind::Lock | CasualtyKind::Key);
    radius.has_unnamed
        || radius
            .dies
            .iter()
            .any(|casualty| is_lock(casualty.kind) && casualty.resource.is_none())
}

impl Unlocks {
    /// # Errors
    /// The rules cannot be read.
    pub(super) async fn protection_of(
        &self,
        backend: &BackendName,
        resource: &Resource,
        radius: Option<&BlastRadius>,
    ) -> Result<Protection, sqlx::Error> {
        let rules = protected_prefixes::all(self.db()).await?;
        Ok(protection_of_lock(&rules, backend, resource, radius))
    }

    /// The protection of an intent: as recorded, or stricter by the current rules. `radius` is the latest read.
    ///
    /// # Errors
    /// The rules cannot be read.
    pub(super) async fn protection(
        &self,
        unlock: &Unlock,
        radius: &BlastRadius,
    ) -> Result<Protection, UnlockError> {
        let rules = protected_prefixes::all(self.db()).await?;
        Ok(protection_of_unlock(&rules, unlock, radius))
    }

    /// Ids of those unlocks that the principal has the permission to approve or to review.
    ///
    /// # Errors
    /// The rules cannot be read.
    pub async fn approvable(
        &self,
        who: &Principal,
        unlocks: &[&Unlock],
    ) -> Result<HashSet<String>, sqlx::Error> {
        let rules = protected_prefixes::all(self.db()).await?;
        let may = |unlock: &Unlock| {
            let protection = protection_of_unlock(&rules, unlock, &unlock.observed.blast_radius);
            protection.check_approver(who, unlock).is_ok()
        };
        let approvable = unlocks.iter().filter(|unlock| may(unlock));
        Ok(approvable.map(|unlock| unlock.id.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::protected_prefixes::RuleBackend;
    use super::*;

    fn rule(prefix: &str, protection: ProtectionLevel) -> ProtectedPrefix {
        ProtectedPrefix {
            id: String::new(),
            backend: RuleBackend::Every,
            prefix: prefix.to_owned(),
            protection,
        }
    }

    fn radius(locks: &[Option<&str>]) -> BlastRadius {
        let mut radius = BlastRadius::default();
        radius.add(CasualtyKind::Session, "app");
        for name in locks {
            radius.add_lock("a lock", name.map(Resource::from));
        }
        radius
    }

    #[test]
    fn the_strictest_of_lock_and_casualties_counts() {
        let rules = [
            rule("billing", ProtectionLevel::Protected),
            rule("billing:test", ProtectionLevel::Standard),
        ];
        let backend = BackendName::parse("db").unwrap();
        let of = |name: &str, radius: Option<&BlastRadius>| {
            let protection = protection_of_lock(&rules, &backend, &Resource::from(name), radius);
            protection.reason.map(|reason| reason.to_string())
        };
        let expected = ProtectionReason::Resource.to_string();
        assert_eq!(of("billing:close", Some(&radius(&[]))), Some(expected));
        assert_eq!(
            of("cache", Some(&radius(&[Some("billing:test:1"), Some("x")]))),
            None
        );
        let casualty = of("cache", Some(&radius(&[Some("x"), Some("billing:close")])));
        assert!(
            casualty
                .unwrap()
                .ends_with("also release billing:close, which is protected")
        );
        let unnamed = Some(ProtectionReason::UnnamedCasualty.to_string());
        assert_eq!(of("cache", Some(&radius(&[None]))), unnamed);
        assert_eq!(of("cache", None), unnamed);
    }

    #[test]
    fn unnamed_casualties_count_only_where_the_backend_has_a_rule() {
        let other_backend = ProtectedPrefix {
            backend: RuleBackend::Named(BackendName::parse("other").unwrap()),
            ..rule("billing", ProtectionLevel::Protected)
        };
        let protection = protection_of_lock(
            &[other_backend],
            &BackendName::parse("db").unwrap(),
            &Resource::from("x"),
            None,
        );
        assert_eq!(protection, Protection::STANDARD);
    }
}
