//! Tiers by prefix: how careful a forced unlock must be. The longest prefix that covers a name counts; of two of the same
//! length the one for this backend, then the stricter one.

use domain::audit::Action;
use domain::escape::visible;
use domain::lease::Scope;
use domain::names::BackendName;
use domain::unlock::Tier;
use serde_json::json;
use sqlx::Row as _;

use super::store::{Value, change};
use super::{UnlockError, Unlocks};
use crate::audit::Entry;
use crate::db::{Db, Tx, on_either};
use crate::identity::{AccessChange, Who, new_id};
use crate::notify::enqueue;

/// Where a rule holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleBackend {
    Every,
    Named(BackendName),
    /// No backend has this name. The rule covers nothing, and is listed so that it can be removed.
    Invalid(String),
}

impl RuleBackend {
    fn from_column(name: Option<String>) -> Self {
        match name {
            None => Self::Every,
            Some(name) => BackendName::parse(&name).map_or(Self::Invalid(name), Self::Named),
        }
    }

    /// None: every backend.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Every => None,
            Self::Named(name) => Some(name.as_str()),
            Self::Invalid(name) => Some(name),
        }
    }

    fn covers(&self, backend: &BackendName) -> bool {
        match self {
            Self::Every => true,
            Self::Named(own) => own == backend,
            Self::Invalid(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierRule {
    pub id: String,
    pub backend: RuleBackend,
    /// On whole segments; empty: every name.
    pub prefix: String,
    pub tier: Tier,
}

impl TierRule {
    fn covers(&self, backend: &BackendName, resource: &str) -> bool {
        let is_all = self.prefix.is_empty();
        self.backend.covers(backend) && (is_all || Scope::prefixes([self.prefix.clone()]).covers(resource))
    }
}

/// The tier of a name. Pure.
pub fn strictest(rules: &[TierRule], backend: &BackendName, resource: &str) -> Tier {
    rules
        .iter()
        .filter(|rule| rule.covers(backend, resource))
        .max_by_key(|rule| (rule.prefix.len(), rule.backend != RuleBackend::Every, rule.tier))
        .map_or(Tier::Standard, |rule| rule.tier)
}

/// The strictest tier that any rule gives to names of this backend. Pure.
pub(super) fn strictest_of_backend(rules: &[TierRule], backend: &BackendName) -> Tier {
    let tiers = rules
        .iter()
        .filter(|rule| rule.backend.covers(backend))
        .map(|rule| rule.tier);
    tiers.max().unwrap_or(Tier::Standard)
}

pub(super) async fn all(db: &Db) -> Result<Vec<TierRule>, sqlx::Error> {
    let mut rules = Vec::new();
    on_either!(db, Db, |pool| {
        let select = "SELECT id, backend, prefix, tier FROM tiers ORDER BY prefix, id";
        for row in sqlx::query(select).fetch_all(pool).await? {
            let backend: Option<String> = row.try_get(1)?;
            let tier: String = row.try_get(3)?;
            rules.push(TierRule {
                id: row.try_get(0)?,
                backend: RuleBackend::from_column(backend),
                prefix: row.try_get(2)?,
                // What this version does not understand is not to be less careful.
                tier: Tier::parse(&tier).unwrap_or(Tier::Protected),
            });
        }
    });
    Ok(rules)
}

impl Unlocks {
    /// Every rule, by prefix.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn tiers(&self) -> Result<Vec<TierRule>, UnlockError> {
        Ok(all(self.db()).await?)
    }

    /// Sets the tier of a prefix, in place of what was said of it before.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn set_tier(
        &self,
        who: &Who,
        backend: Option<&BackendName>,
        prefix: &str,
        tier: Tier,
    ) -> Result<(), UnlockError> {
        let id = new_id("r_").map_err(|_| UnlockError::CutOff)?;
        let rules = self.tiers().await?;
        let before = tier_of_rule(&rules, backend, prefix);
        let is_loosened = tier == Tier::Standard && loosens(&rules, backend, prefix);
        let forget = "DELETE FROM tiers WHERE prefix = $1 AND coalesce(backend, '') = $2";
        let insert = "INSERT INTO tiers (id, backend, prefix, tier) VALUES ($1, $2, $3, $4)";
        let backend = backend.map(BackendName::as_str);
        let mut tx = self.db().begin().await?;
        let after = json!({"backend": backend, "prefix": prefix, "tier": tier});
        let entry = Entry {
            before: before.map(|tier| json!({"tier": tier})),
            after: Some(after),
            ..Entry::new(Action::TierChange, "ok", who.actor(None), who.origin.clone())
        };
        let appended = self.audit.append_in(&mut tx, entry).await?;
        let known = [Value::Text(prefix), Value::Text(backend.unwrap_or_default())];
        change(&mut tx, forget, &known).await?;
        let values = [
            Value::Text(&id),
            Value::MaybeText(backend),
            Value::Text(prefix),
            Value::Text(tier.wire()),
        ];
        change(&mut tx, insert, &values).await?;
        if is_loosened {
            self.notify_unprotected(&mut tx, who, backend, prefix).await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        Ok(())
    }

    /// Every receiver is sent that names are not protected any more.
    async fn notify_unprotected(
        &self,
        tx: &mut Tx,
        who: &Who,
        backend: Option<&str>,
        prefix: &str,
    ) -> Result<(), UnlockError> {
        let place = match prefix {
            "" => "every name".to_owned(),
            prefix => format!("the names below {}", visible(prefix)),
        };
        let backend = backend.map_or_else(|| "every backend".to_owned(), |name| visible(name).into_owned());
        let change = AccessChange {
            change: "protection_removed",
            subject: prefix,
            by: who.name(),
            summary: format!(
                "{} removed the protection of {place} on {backend}",
                visible(who.name())
            ),
            path: "/settings/tiers",
        };
        let now = self.now_ms();
        let notice = change.notice(now).map_err(|_| UnlockError::CutOff)?;
        enqueue(tx, &notice, now).await?;
        Ok(())
    }

    /// Takes a rule away; a second time it changes nothing.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn remove_tier(&self, who: &Who, id: &str) -> Result<(), UnlockError> {
        let known = self.tiers().await?.into_iter().find(|rule| rule.id == id);
        let Some(rule) = known else { return Ok(()) };
        let before = json!({"backend": rule.backend.as_str(), "prefix": rule.prefix, "tier": rule.tier});
        let entry = Entry {
            before: Some(before),
            ..Entry::new(Action::TierChange, "ok", who.actor(None), who.origin.clone())
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        change(&mut tx, "DELETE FROM tiers WHERE id = $1", &[Value::Text(id)]).await?;
        if rule.tier == Tier::Protected {
            self.notify_unprotected(&mut tx, who, rule.backend.as_str(), &rule.prefix)
                .await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        Ok(())
    }
}

fn tier_of_rule(rules: &[TierRule], backend: Option<&BackendName>, prefix: &str) -> Option<Tier> {
    let backend = backend.map(BackendName::as_str);
    let said = rules
        .iter()
        .find(|rule| rule.backend.as_str() == backend && rule.prefix == prefix);
    said.map(|rule| rule.tier)
}

/// Whether a `standard` rule for this prefix takes protection away: it lies below a protected one, or replaces it. Pure.
fn loosens(rules: &[TierRule], backend: Option<&BackendName>, prefix: &str) -> bool {
    rules.iter().any(|rule| {
        let is_above = rule.prefix.is_empty() || Scope::prefixes([rule.prefix.clone()]).covers(prefix);
        let is_here = backend.is_none_or(|name| rule.backend.covers(name));
        rule.tier == Tier::Protected && is_above && is_here
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_rule_below_a_protected_one_loosens() {
        let rules = [TierRule {
            id: String::new(),
            backend: RuleBackend::Every,
            prefix: "jobs".to_owned(),
            tier: Tier::Protected,
        }];
        let cache = BackendName::parse("cache").unwrap();
        assert!(loosens(&rules, None, "jobs") && loosens(&rules, Some(&cache), "jobs/billing"));
        assert!(!loosens(&rules, None, "reports") && !loosens(&rules, None, ""));
    }

    #[test]
    fn the_longest_prefix_that_covers_a_name_decides() {
        // On whole segments; the backend's own rule before the general one; two alike: the stricter.
        let rule = |backend: Option<&str>, prefix: &str, tier| TierRule {
            id: String::new(),
            backend: RuleBackend::from_column(backend.map(str::to_owned)),
            prefix: prefix.to_owned(),
            tier,
        };
        let rules = [
            rule(None, "", Tier::Protected),
            rule(None, "jobs", Tier::Standard),
            rule(None, "jobs/billing", Tier::Protected),
            rule(Some("cache"), "jobs/billing", Tier::Standard),
            rule(None, "twice", Tier::Protected),
            rule(None, "twice", Tier::Standard),
            // No name of a backend: it covers nothing, and loosens nothing.
            rule(Some("No Name"), "jobs/billing/1/deep", Tier::Standard),
        ];
        let tier = |backend: &str, name: &str| strictest(&rules, &BackendName::parse(backend).unwrap(), name);
        assert_eq!(tier("db", "jobs/x"), Tier::Standard);
        assert_eq!(tier("db", "jobsx"), Tier::Protected);
        assert_eq!(tier("db", "jobs/billing/1"), Tier::Protected);
        assert_eq!(tier("db", "jobs/billingx"), Tier::Standard);
        assert_eq!(tier("cache", "jobs/billing/1"), Tier::Standard);
        assert_eq!(tier("db", "twice"), Tier::Protected);
        assert_eq!(tier("db", "jobs/billing/1/deep"), Tier::Protected);
        assert_eq!(strictest(&[], &BackendName::builtin(), "x"), Tier::Standard);
    }
}
