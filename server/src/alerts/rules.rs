//! Stored rules: read, created, changed with their versions, removed. Each change is in the audit log.

use domain::alerts::limits::RULES_MAX;
use domain::alerts::{Draft, KnownNames, Pattern, Rule, RuleId, builtin, parse};
use domain::audit::Action;
use sqlx::Row as _;

use super::alert_cache::{AlertState, raise_revision};
use super::{AlertError, Alerts};
use crate::audit::Entry;
use crate::identity::Principal;
use runtime::db::{Tx, on_either};
use runtime::random::prefixed_id;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRule {
    pub rule: Rule,
    pub version: i64,
    pub is_gone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleVersion {
    pub version: i64,
    pub at: i64,
    pub by: String,
    pub draft: Draft,
}

impl Alerts {
    /// Inserts built-in rules that never existed. A removed one is not restored.
    pub(super) async fn seed(&self) -> Result<(), sqlx::Error> {
        let insert =
            "INSERT INTO alert_rules (id, version, body) VALUES ($1, 1, $2) ON CONFLICT (id) DO NOTHING";
        let mut tx = self.db.begin().await?;
        raise_revision(&mut tx).await?;
        for rule in builtin() {
            let body = text(&Draft::from(&rule));
            let is_new = on_either!(&mut tx, Tx, |tx| {
                let query = sqlx::query(insert).bind(rule.id.as_str()).bind(&body);
                query.execute(&mut **tx).await?.rows_affected()
            });
            if is_new > 0 {
                insert_version(&mut tx, &rule.id, 1, &body, (self.now(), "system", "built in")).await?;
            }
        }
        tx.commit().await
    }

    /// All rules, ordered by severity and name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn rules(&self) -> Result<Vec<KeptRule>, sqlx::Error> {
        let state = self.recent_state().await?;
        let present = state.rules.iter().filter(|stored| !stored.is_gone);
        let mut rules: Vec<KeptRule> = present.cloned().collect();
        rules.sort_by(|a, b| {
            (a.rule.severity, &a.rule.name, &a.rule.id).cmp(&(b.rule.severity, &b.rule.name, &b.rule.id))
        });
        Ok(rules)
    }

    pub(super) async fn read_rules(&self) -> Result<Vec<KeptRule>, sqlx::Error> {
        let select = "SELECT version, body, is_deleted FROM alert_rules ORDER BY id";
        let mut rules = Vec::new();
        on_either!(&self.db, Db, |pool| {
            for row in sqlx::query(select).fetch_all(pool).await? {
                let body: String = row.try_get(1)?;
                let Some(rule) = self.read(&body) else { continue };
                rules.push(KeptRule {
                    rule,
                    version: row.try_get(0)?,
                    is_gone: row.try_get::<i64, _>(2)? == 1,
                });
            }
        });
        Ok(rules)
    }

    /// A stored rule stays valid when its backend is no longer configured.
    fn read(&self, body: &str) -> Option<Rule> {
        self.parse_stored(&serde_json::from_str(body).ok()?)
    }

    pub(super) fn parse_stored(&self, draft: &Draft) -> Option<Rule> {
        let known = KnownNames {
            backends: &draft.backends,
            prefix: None,
            receivers: None,
        };
        parse(draft, &known).ok()
    }

    /// # Errors
    /// `NotFound`, or the store does not answer.
    pub async fn rule(&self, id: &str) -> Result<KeptRule, AlertError> {
        let found = self
            .rules()
            .await?
            .into_iter()
            .find(|stored| stored.rule.id.as_str() == id);
        found.ok_or(AlertError::NotFound("rule"))
    }

    /// Versions, newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn versions(&self, id: &RuleId) -> Result<Vec<RuleVersion>, sqlx::Error> {
        let select = "SELECT version, at, by_name, body FROM alert_rule_versions WHERE rule_id = $1
            ORDER BY version DESC LIMIT 100";
        let mut versions = Vec::new();
        on_either!(&self.db, Db, |pool| {
            for row in sqlx::query(select).bind(id.as_str()).fetch_all(pool).await? {
                let body: String = row.try_get(3)?;
                versions.push(RuleVersion {
                    version: row.try_get(0)?,
                    at: row.try_get(1)?,
                    by: row.try_get(2)?,
                    draft: serde_json::from_str(&body).unwrap_or_default(),
                });
            }
        });
        Ok(versions)
    }

    async fn receivers(&self) -> Result<Vec<String>, sqlx::Error> {
        let select = "SELECT name FROM receivers ORDER BY name";
        Ok(on_either!(&self.db, Db, |pool| sqlx::query_scalar(select)
            .fetch_all(pool)
            .await?))
    }

    /// Parses a draft. `any_prefix`: also allows a prefix that matches no lock yet.
    ///
    /// # Errors
    /// `Invalid`, with every field.
    pub async fn parse(&self, draft: &Draft, any_prefix: bool) -> Result<Rule, AlertError> {
        let receivers = self.receivers().await?;
        let is_seen = |prefix: &Pattern| {
            let mut is_seen = false;
            self.inventory
                .for_each_snapshot(self.clock.now(), 0, &mut |snapshot| {
                    is_seen |= prefix.covers(snapshot.name);
                });
            is_seen
        };
        let known = KnownNames {
            backends: &self.backends.names(),
            prefix: if any_prefix { None } else { Some(&is_seen) },
            receivers: Some(&receivers),
        };
        parse(draft, &known).map_err(AlertError::Invalid)
    }

    /// An unchanged prefix is not checked again.
    async fn parse_over(
        &self,
        draft: &Draft,
        before: Option<&KeptRule>,
        any_prefix: bool,
    ) -> Result<Rule, AlertError> {
        let is_same_prefix =
            before.is_some_and(|stored| stored.rule.scope.prefix.as_str() == draft.prefix.trim());
        self.parse(draft, any_prefix || is_same_prefix).await
    }

    /// The rule that saving would store, and the version it would replace.
    ///
    /// # Errors
    /// `Invalid`, or the store does not answer.
    pub async fn would_save(
        &self,
        draft: &Draft,
        any_prefix: bool,
    ) -> Result<(Rule, Option<i64>), AlertError> {
        let state = self.current_state().await?;
        let before = state.rule(&draft.id);
        let rule = self.parse_over(draft, before, any_prefix).await?;
        Ok((rule, before.map(|stored| stored.version)))
    }

    /// Creates a rule, or changes the one with its id if the version matches. Returns the stored rule.
    ///
    /// # Errors
    /// `Invalid`, `Changed`, `NotFound` with the version of a removed rule, or the store does not answer.
    pub async fn save_rule(
        &self,
        who: &Principal,
        mut draft: Draft,
        expected: Option<i64>,
        any_prefix: bool,
    ) -> Result<KeptRule, AlertError> {
        let state = self.current_state().await?;
        let rules = &state.rules;
        let before = state.rule(&draft.id);
        check_version(before, expected)?;
        if draft.id.is_empty() {
            draft.id = prefixed_id("rule_");
            draft.id = draft.id.to_ascii_lowercase();
        }
        let rule = self.parse_over(&draft, before, any_prefix).await?;
        if before.is_none() && rules.iter().filter(|stored| !stored.is_gone).count() >= RULES_MAX {
            let why = format!("would be rule {} of {RULES_MAX}", RULES_MAX + 1);
            return Err(AlertError::invalid("id", why, "remove one first"));
        }
        let stored = rules.iter().find(|stored| stored.rule.id == rule.id);
        let version = stored.map_or(1, |stored| stored.version + 1);
        let after = Draft::from(&rule);
        let action = if before.is_some() {
            Action::RuleChange
        } else {
            Action::RuleCreate
        };
        let entry = Entry {
            before: before.map(|stored| json(&Draft::from(&stored.rule))),
            after: Some(json(&after)),
            ..Entry::new(action, "ok", who.actor(None), who.origin.clone())
        };
        let body = text(&after);
        let upsert = "INSERT INTO alert_rules (id, version, body) VALUES ($1, $2, $3)
            ON CONFLICT (id) DO UPDATE SET version = excluded.version, body = excluded.body, is_deleted = 0
            WHERE alert_rules.version = excluded.version - 1 AND alert_rules.is_deleted = $4";
        let mut tx = self.db.begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        raise_revision(&mut tx).await?;
        let rows_written = on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(upsert)
                .bind(rule.id.as_str())
                .bind(version)
                .bind(&body)
                .bind(i64::from(before.is_none()));
            query.execute(&mut **tx).await?.rows_affected()
        });
        if rows_written == 0 {
            return Err(AlertError::Changed { now: version });
        }
        insert_version(
            &mut tx,
            &rule.id,
            version,
            &body,
            (self.now(), who.id(), who.name()),
        )
        .await?;
        tx.commit().await?;
        self.cache.mark_written();
        self.audit.export(&appended).await;
        Ok(KeptRule {
            rule,
            version,
            is_gone: false,
        })
    }

    /// # Errors
    /// `NotFound`, or the store does not answer.
    pub async fn remove_rule(&self, who: &Principal, id: &str) -> Result<(), AlertError> {
        let stored = self.rule(id).await?;
        let entry = Entry {
            before: Some(json(&Draft::from(&stored.rule))),
            ..Entry::new(Action::RuleRemove, "ok", who.actor(None), who.origin.clone())
        };
        let mut tx = self.db.begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        raise_revision(&mut tx).await?;
        let remove = "UPDATE alert_rules SET is_deleted = 1 WHERE id = $1";
        on_either!(&mut tx, Tx, |tx| {
            sqlx::query(remove)
                .bind(id)
                .execute(&mut **tx)
                .await?
                .rows_affected()
        });
        tx.commit().await?;
        self.cache.mark_written();
        self.audit.export(&appended).await;
        Ok(())
    }
}

impl AlertState {
    /// Removed rules are disabled.
    pub(super) fn rules(&self) -> Vec<Rule> {
        let stored = self.rules.iter();
        stored
            .map(|stored| Rule {
                is_enabled: stored.rule.is_enabled && !stored.is_gone,
                ..stored.rule.clone()
            })
            .collect()
    }

    fn rule(&self, id: &str) -> Option<&KeptRule> {
        let found = self.rules.iter().find(|stored| stored.rule.id.as_str() == id);
        found.filter(|stored| !stored.is_gone)
    }
}

/// A change is of the current version. Without a version a removed rule is created again, on purpose.
fn check_version(before: Option<&KeptRule>, expected: Option<i64>) -> Result<(), AlertError> {
    match (before, expected) {
        (None, Some(_)) => Err(AlertError::NotFound("rule")),
        (Some(before), Some(expected)) if before.version != expected => {
            Err(AlertError::Changed { now: before.version })
        }
        (_, None) | (Some(_), Some(_)) => Ok(()),
    }
}

fn json(draft: &Draft) -> serde_json::Value {
    serde_json::to_value(draft).unwrap_or_default()
}

fn text(draft: &Draft) -> String {
    json(draft).to_string()
}

/// `by`: time, id and name of the author.
async fn insert_version(
    tx: &mut Tx,
    id: &RuleId,
    version: i64,
    body: &str,
    by: (i64, &str, &str),
) -> Result<(), sqlx::Error> {
    let insert = "INSERT INTO alert_rule_versions (rule_id, version, body, at, by_id, by_name)
        VALUES ($1, $2, $3, $4, $5, $6)";
    on_either!(tx, Tx, |tx| {
        let query = sqlx::query(insert).bind(id.as_str()).bind(version).bind(body);
        let query = query.bind(by.0).bind(by.1).bind(by.2);
        query.execute(&mut **tx).await?.rows_affected()
    });
    Ok(())
}
