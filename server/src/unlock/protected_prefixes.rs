//! Protected prefixes. The longest matching prefix decides; of two with the same length the one for this backend,
//! then the stricter one.

use domain::audit::Action;
use domain::escape::visible;
use domain::lease::Scope;
use domain::names::BackendName;
use domain::unlock::ProtectionLevel;
use serde_json::json;

use super::store::{Value, change};
use super::{UnlockError, Unlocks};
use crate::audit::Entry;
use crate::identity::{AccessChange, Principal};
use crate::notify::enqueue;
use runtime::db::{Db, Tx, on_either};
use runtime::random::prefixed_id;

/// Backend that a rule applies to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleBackend {
    Every,
    Named(BackendName),
    /// Not a valid backend name. The rule matches nothing, and is listed so that it can be removed.
    Invalid(String),
}

impl RuleBackend {
    fn from_column(name: Option<String>) -> Self {
        match name {
            None => Self::Every,
            Some(name) => BackendName::parse(&name).map_or(Self::Invalid(name), Self::Named),
        }
    }

    /// `None`: every backend.
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
pub struct ProtectedPrefix {
    pub id: String,
    pub backend: RuleBackend,
    /// Matches whole segments; empty: every name.
    pub prefix: String,
    pub protection: ProtectionLevel,
}

impl ProtectedPrefix {
    fn covers(&self, backend: &BackendName, resource: &str) -> bool {
        let is_all = self.prefix.is_empty();
        self.backend.covers(backend) && (is_all || Scope::prefixes([self.prefix.clone()]).covers(resource))
    }
}

/// The protection level of a name. Pure.
pub fn strictest(rules: &[ProtectedPrefix], backend: &BackendName, resource: &str) -> ProtectionLevel {
    rules
        .iter()
        .filter(|rule| rule.covers(backend, resource))
        .max_by_key(|rule| {
            (
                rule.prefix.len(),
                rule.backend != RuleBackend::Every,
                rule.protection,
            )
        })
        .map_or(ProtectionLevel::Standard, |rule| rule.protection)
}

/// The strictest level of any rule that applies to this backend. Pure.
pub(super) fn strictest_of_backend(rules: &[ProtectedPrefix], backend: &BackendName) -> ProtectionLevel {
    let protected_prefixes = rules
        .iter()
        .filter(|rule| rule.backend.covers(backend))
        .map(|rule| rule.protection);
    protected_prefixes.max().unwrap_or(ProtectionLevel::Standard)
}

const SELECT: &str = "SELECT id, backend, prefix, protection FROM protected_prefixes ORDER BY prefix, id";

type RuleTuple = (String, Option<String>, String, String);

impl From<RuleTuple> for ProtectedPrefix {
    fn from((id, backend, prefix, protection): RuleTuple) -> Self {
        Self {
            id,
            backend: RuleBackend::from_column(backend),
            prefix,
            // A level written by a newer version counts as protected.
            protection: ProtectionLevel::parse(&protection).unwrap_or(ProtectionLevel::Protected),
        }
    }
}

pub(super) async fn all(db: &Db) -> Result<Vec<ProtectedPrefix>, sqlx::Error> {
    let rules: Vec<RuleTuple> = on_either!(db, Db, |pool| sqlx::query_as(SELECT).fetch_all(pool).await?);
    Ok(rules.into_iter().map(ProtectedPrefix::from).collect())
}

/// The same in the transaction of a change.
pub(super) async fn all_in(tx: &mut Tx) -> Result<Vec<ProtectedPrefix>, sqlx::Error> {
    let rules: Vec<RuleTuple> = on_either!(tx, Tx, |tx| sqlx::query_as(SELECT).fetch_all(&mut **tx).await?);
    Ok(rules.into_iter().map(ProtectedPrefix::from).collect())
}

impl Unlocks {
    /// All rules, ordered by prefix.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn protected_prefixes(&self) -> Result<Vec<ProtectedPrefix>, UnlockError> {
        Ok(all(self.db()).await?)
    }

    /// Sets the protection level of a prefix and replaces an earlier rule. Returns the exceptions to it: `standard` rules that
    /// keep names below it unprotected.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn set_protected_prefix(
        &self,
        who: &Principal,
        backend: Option<&BackendName>,
        prefix: &str,
        protection: ProtectionLevel,
    ) -> Result<Vec<ProtectedPrefix>, UnlockError> {
        let id = prefixed_id("r_");
        let rules = self.protected_prefixes().await?;
        let exceptions = exceptions(
            &rules,
            &ProtectedPrefix {
                id: id.clone(),
                backend: backend.cloned().map_or(RuleBackend::Every, RuleBackend::Named),
                prefix: prefix.to_owned(),
                protection,
            },
        );
        let before = protection_of_prefix(&rules, backend, prefix);
        let is_loosened = protection == ProtectionLevel::Standard && loosens(&rules, backend, prefix);
        let forget = "DELETE FROM protected_prefixes WHERE prefix = $1 AND coalesce(backend, '') = $2";
        let insert =
            "INSERT INTO protected_prefixes (id, backend, prefix, protection) VALUES ($1, $2, $3, $4)";
        let backend = backend.map(BackendName::as_str);
        let mut tx = self.db().begin().await?;
        let after = json!({"backend": backend, "prefix": prefix, "protection": protection});
        let entry = Entry {
            before: before.map(|protection| json!({"protection": protection})),
            after: Some(after),
            ..Entry::new(
                Action::ProtectedPrefixChange,
                "ok",
                who.actor(None),
                who.origin.clone(),
            )
        };
        let appended = self.audit.append_in(&mut tx, entry).await?;
        let known = [Value::Text(prefix), Value::Text(backend.unwrap_or_default())];
        change(&mut tx, forget, &known).await?;
        let values = [
            Value::Text(&id),
            Value::MaybeText(backend),
            Value::Text(prefix),
            Value::Text(protection.as_str()),
        ];
        change(&mut tx, insert, &values).await?;
        if is_loosened {
            self.notify_unprotected(&mut tx, who, backend, prefix).await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        Ok(exceptions)
    }

    /// Notifies every receiver that names lost their protection.
    async fn notify_unprotected(
        &self,
        tx: &mut Tx,
        who: &Principal,
        backend: Option<&str>,
        prefix: &str,
    ) -> Result<(), UnlockError> {
        let names = match prefix {
            "" => "every name".to_owned(),
            prefix => format!("the names below {}", visible(prefix)),
        };
        let backend = backend.map_or_else(|| "every backend".to_owned(), |name| visible(name).into_owned());
        let change = AccessChange {
            change: "protection_removed",
            subject: prefix,
            by: who.name(),
            summary: format!(
                "{} removed the protection of {names} on {backend}",
                visible(who.name())
            ),
            path: "/settings/protected-prefixes",
        };
        let now = self.now_ms();
        let notice = change.notice(now).map_err(|_| UnlockError::CutOff)?;
        enqueue(tx, &notice, now).await?;
        Ok(())
    }

    /// Removes a rule. Idempotent.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn remove_protected_prefix(&self, who: &Principal, id: &str) -> Result<(), UnlockError> {
        let known = self
            .protected_prefixes()
            .await?
            .into_iter()
            .find(|rule| rule.id == id);
        let Some(rule) = known else { return Ok(()) };
        let before =
            json!({"backend": rule.backend.as_str(), "prefix": rule.prefix, "protection": rule.protection});
        let entry = Entry {
            before: Some(before),
            ..Entry::new(
                Action::ProtectedPrefixChange,
                "ok",
                who.actor(None),
                who.origin.clone(),
            )
        };
        let mut tx = self.db().begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        change(
            &mut tx,
            "DELETE FROM protected_prefixes WHERE id = $1",
            &[Value::Text(id)],
        )
        .await?;
        if rule.protection == ProtectionLevel::Protected {
            self.notify_unprotected(&mut tx, who, rule.backend.as_str(), &rule.prefix)
                .await?;
        }
        tx.commit().await?;
        self.notifier.wake();
        self.audit.export(&appended).await;
        Ok(())
    }
}

fn protection_of_prefix(
    rules: &[ProtectedPrefix],
    backend: Option<&BackendName>,
    prefix: &str,
) -> Option<ProtectionLevel> {
    let backend = backend.map(BackendName::as_str);
    let covering = rules
        .iter()
        .find(|rule| rule.backend.as_str() == backend && rule.prefix == prefix);
    covering.map(|rule| rule.protection)
}

/// Whether this is a `standard` rule for names below a protected prefix. Pure.
pub fn is_exception(rules: &[ProtectedPrefix], rule: &ProtectedPrefix) -> bool {
    let backend = match &rule.backend {
        RuleBackend::Every => None,
        RuleBackend::Named(name) => Some(name),
        RuleBackend::Invalid(_) => return false,
    };
    rule.protection == ProtectionLevel::Standard && loosens(rules, backend, &rule.prefix)
}

/// Rules that are exceptions to this one, which replaces an earlier rule of its prefix. Pure.
fn exceptions(rules: &[ProtectedPrefix], to: &ProtectedPrefix) -> Vec<ProtectedPrefix> {
    let others = rules
        .iter()
        .filter(|rule| (&rule.backend, &rule.prefix) != (&to.backend, &to.prefix));
    let found = others.filter(|rule| is_exception(std::slice::from_ref(to), rule));
    found.cloned().collect()
}

/// Whether a `standard` rule for this prefix reduces protection: it lies below a protected one or replaces it. Pure.
fn loosens(rules: &[ProtectedPrefix], backend: Option<&BackendName>, prefix: &str) -> bool {
    rules.iter().any(|rule| {
        let is_above = rule.prefix.is_empty() || Scope::prefixes([rule.prefix.clone()]).covers(prefix);
        let is_here = backend.is_none_or(|name| rule.backend.covers(name));
        // At equal length, a backend's own rule keeps its effect.
        let is_kept = backend.is_none() && rule.backend != RuleBackend::Every && rule.prefix == prefix;
        rule.protection == ProtectionLevel::Protected && is_above && is_here && !is_kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_rule_below_a_protected_one_loosens() {
        let rules = [ProtectedPrefix {
            id: String::new(),
            backend: RuleBackend::Every,
            prefix: "jobs".to_owned(),
            protection: ProtectionLevel::Protected,
        }];
        let cache = BackendName::parse("cache").unwrap();
        assert!(loosens(&rules, None, "jobs") && loosens(&rules, Some(&cache), "jobs/billing"));
        assert!(!loosens(&rules, None, "reports") && !loosens(&rules, None, ""));
        let own = [ProtectedPrefix {
            backend: RuleBackend::Named(cache),
            ..rules[0].clone()
        }];
        assert!(!loosens(&own, None, "jobs") && loosens(&own, None, "jobs/billing"));
    }

    #[test]
    fn the_longest_prefix_that_covers_a_name_decides() {
        // Whole segments; the backend's own rule before the general one; of two equal ones the stricter.
        let rule = |backend: Option<&str>, prefix: &str, protection| ProtectedPrefix {
            id: String::new(),
            backend: RuleBackend::from_column(backend.map(str::to_owned)),
            prefix: prefix.to_owned(),
            protection,
        };
        let rules = [
            rule(None, "", ProtectionLevel::Protected),
            rule(None, "jobs", ProtectionLevel::Standard),
            rule(None, "jobs/billing", ProtectionLevel::Protected),
            rule(Some("cache"), "jobs/billing", ProtectionLevel::Standard),
            rule(None, "twice", ProtectionLevel::Protected),
            rule(None, "twice", ProtectionLevel::Standard),
            // An invalid backend name: the rule matches nothing and reduces nothing.
            rule(Some("No Name"), "jobs/billing/1/deep", ProtectionLevel::Standard),
        ];
        let protection =
            |backend: &str, name: &str| strictest(&rules, &BackendName::parse(backend).unwrap(), name);
        assert_eq!(protection("db", "jobs/x"), ProtectionLevel::Standard);
        assert_eq!(protection("db", "jobsx"), ProtectionLevel::Protected);
        assert_eq!(protection("db", "jobs/billing/1"), ProtectionLevel::Protected);
        assert_eq!(protection("db", "jobs/billingx"), ProtectionLevel::Standard);
        assert_eq!(protection("cache", "jobs/billing/1"), ProtectionLevel::Standard);
        assert_eq!(protection("db", "twice"), ProtectionLevel::Protected);
        assert_eq!(
            protection("db", "jobs/billing/1/deep"),
            ProtectionLevel::Protected
        );
        assert_eq!(
            strictest(&[], &BackendName::builtin(), "x"),
            ProtectionLevel::Standard
        );
    }
}
