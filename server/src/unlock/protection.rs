//! How strictly a forced unlock is protected, and why: by the name of the lock and by everything that would be released
//! with it.
//!
//! Owns the comparison of a blast radius with the rules. The rules themselves are in `tiers`.

use domain::access::{Grants, Right};
use domain::names::{BackendName, Resource};
use domain::release::{BlastRadius, CasualtyKind};
use domain::unlock::{Tier, TierReason, Unlock};

use super::tiers::{self, TierRule};
use super::{UnlockError, Unlocks, seen_by};
use crate::identity::Who;

/// The strictest tier of a lock and of its casualties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Protection {
    pub(super) tier: Tier,
    /// None where the tier is `standard`.
    pub(super) reason: Option<TierReason>,
    /// Every protected lock that would be released as well.
    casualties: Vec<String>,
}

impl Protection {
    const STANDARD: Self = Self {
        tier: Tier::Standard,
        reason: None,
        casualties: Vec::new(),
    };

    pub(super) fn is_protected(&self) -> bool {
        self.tier == Tier::Protected
    }

    /// The stricter of both; of two alike, this one.
    fn or_stricter(self, other: Self) -> Self {
        if other.tier > self.tier { other } else { self }
    }

    /// Whether grants cover everything that is protected here.
    pub(super) fn may_be_approved_with(&self, grants: &Grants, unlock: &Unlock) -> bool {
        let may = |name: &str| grants.may(Right::Approve, &unlock.backend, name);
        let is_unnamed = self.reason == Some(TierReason::UnnamedCasualty);
        may(&unlock.resource.text())
            && self.casualties.iter().all(|name| may(name))
            && (!is_unnamed || grants.scope_on(Right::Approve, &unlock.backend).is_everything())
    }

    /// For a message: why more than a confirmation is needed, without a name that the reader may not see.
    pub(super) fn why(&self, who: &Who, backend: &BackendName) -> String {
        let reason = seen_by(who, backend, self.reason.clone());
        reason.unwrap_or(TierReason::Resource).to_string()
    }
}

/// The protection of one lock. Without a radius everything counts as unnamed. Pure.
pub(super) fn of_lock(
    rules: &[TierRule],
    backend: &BackendName,
    resource: &Resource,
    radius: Option<&BlastRadius>,
) -> Protection {
    let is_protected = |name: &str| tiers::strictest(rules, backend, name) == Tier::Protected;
    let named = radius
        .into_iter()
        .flat_map(|radius| &radius.dies)
        .filter_map(|one| one.resource.as_ref().map(Resource::text));
    let casualties: Vec<String> = named.filter(|name| is_protected(name)).collect();
    let is_complete = radius.is_some_and(|radius| !has_unnamed(radius));
    let reason = match casualties.first() {
        _ if is_protected(&resource.text()) => TierReason::Resource,
        Some(name) => TierReason::Casualty {
            resource: Some(name.clone()),
        },
        None if !is_complete && tiers::strictest_of_backend(rules, backend) == Tier::Protected => {
            TierReason::UnnamedCasualty
        }
        None => return Protection::STANDARD,
    };
    Protection {
        tier: Tier::Protected,
        reason: Some(reason),
        casualties,
    }
}

/// Also of an intent that an older version stored: its locks have no names.
fn has_unnamed(radius: &BlastRadius) -> bool {
    let is_lock = |kind| matches!(kind, CasualtyKind::Lock | CasualtyKind::Key);
    radius.has_unnamed
        || radius
            .dies
            .iter()
            .any(|one| is_lock(one.kind) && one.resource.is_none())
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
        let rules = tiers::all(self.db()).await?;
        Ok(of_lock(&rules, backend, resource, radius))
    }

    /// The protection of an intent: as it was recorded, or stricter by the rules of now. `radius` is the latest reading.
    ///
    /// # Errors
    /// The rules cannot be read.
    pub(super) async fn protection(
        &self,
        unlock: &Unlock,
        radius: &BlastRadius,
    ) -> Result<Protection, UnlockError> {
        let recorded = Protection {
            tier: unlock.tier,
            casualties: unlock
                .tier_reason
                .as_ref()
                .and_then(|reason| reason.casualty().map(str::to_owned))
                .into_iter()
                .collect(),
            // Intents of older versions have a tier and no reason.
            reason: unlock
                .tier_reason
                .clone()
                .or((unlock.tier == Tier::Protected).then_some(TierReason::Resource)),
        };
        let now = self.protection_of(&unlock.backend, &unlock.resource, Some(radius));
        Ok(now.await?.or_stricter(recorded))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tiers::RuleBackend;
    use super::*;

    fn rule(prefix: &str, tier: Tier) -> TierRule {
        TierRule {
            id: String::new(),
            backend: RuleBackend::Every,
            prefix: prefix.to_owned(),
            tier,
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
            rule("billing", Tier::Protected),
            rule("billing:test", Tier::Standard),
        ];
        let backend = BackendName::parse("db").unwrap();
        let of = |name: &str, radius: Option<&BlastRadius>| {
            let protection = of_lock(&rules, &backend, &Resource::from(name), radius);
            protection.reason.map(|reason| reason.to_string())
        };
        let own = TierReason::Resource.to_string();
        assert_eq!(of("billing:close", Some(&radius(&[]))), Some(own));
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
        let unnamed = Some(TierReason::UnnamedCasualty.to_string());
        assert_eq!(of("cache", Some(&radius(&[None]))), unnamed);
        assert_eq!(of("cache", None), unnamed);
    }

    #[test]
    fn unnamed_casualties_count_only_where_the_backend_has_a_rule() {
        let elsewhere = TierRule {
            backend: RuleBackend::Named(BackendName::parse("other").unwrap()),
            ..rule("billing", Tier::Protected)
        };
        let protection = of_lock(
            &[elsewhere],
            &BackendName::parse("db").unwrap(),
            &Resource::from("x"),
            None,
        );
        assert_eq!(protection, Protection::STANDARD);
    }
}
