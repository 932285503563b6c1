//! Alerts and rules as a principal may see them, for pages and the API.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use domain::access::Visible;
use domain::alerts::{
    AlertSeverity, Labels, Rule, RuleId, Subject, fingerprint, group_of, is_alert_visible, labels,
    notified_fingerprint, notified_labels, visible_why,
};

use super::alert_cache::AlertState;
use super::rules::{KeptRule, RuleVersion};
use super::store::{self, EndedAlert, StoredAlert};
use super::{AlertError, Alerts};
use runtime::change_signal::ChangeSignal;

/// Place of an alert in the list: pending ones last, then by severity, start (newest first) and id.
pub type AlertPosition = (bool, AlertSeverity, Reverse<i64>, i64);

/// A pending or firing alert.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenAlert {
    pub kept: StoredAlert,
    /// As far as the reader may see it.
    pub rule: Rule,
    /// The reader may open the rule's page.
    pub is_rule_visible: bool,
    /// Those that silences match, as far as the reader may see them.
    pub labels: Labels,
    /// The same for every reader.
    pub fingerprint: String,
    pub is_silenced: bool,
}

/// An alert that fired and ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedAlert {
    pub rule_name: String,
    /// Limited to what the reader may see; `None`: it was removed.
    pub rule: Option<Rule>,
    pub subject: Subject,
    pub fired_at: i64,
    pub ended_at: i64,
}

/// Alert part of a hint of the event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AlertSummary {
    /// Differs whenever a visible alert, rule or silence differs.
    pub revision: u64,
    /// Visible groups with an alert that fires and is neither silenced nor acknowledged.
    pub firing_groups: u32,
}

impl Alerts {
    /// Changes of alerts, rules and silences in this process.
    pub fn changes(&self) -> &ChangeSignal {
        self.cache.writes()
    }

    /// # Errors
    /// The store does not answer.
    pub async fn summary(&self, visible: &Visible) -> Result<AlertSummary, sqlx::Error> {
        let (state, now) = (self.recent_state().await?, self.now());
        Ok(state.summary_for(visible, now, || state.summary(visible, now)))
    }

    /// Visible pending and firing alerts; firing first, then by severity.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn open(&self, visible: &Visible) -> Result<Vec<OpenAlert>, sqlx::Error> {
        Ok(self.recent_state().await?.open_alerts(visible, self.now()))
    }

    /// Fingerprints of alerts that fire and were notified, as receivers know them.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn notified_fingerprints(&self) -> Result<BTreeSet<String>, sqlx::Error> {
        let state = self.current_state().await?;
        let open = state.open.iter().map(|open| &open.alert);
        let fingerprints = open.filter_map(|alert| {
            let stored = state.rules.iter().find(|stored| stored.rule.id == alert.rule)?;
            notified_fingerprint(&stored.rule, alert)
        });
        Ok(fingerprints.collect())
    }

    /// The newest visible alerts that fired and ended, newest first; of those that are cached.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn resolved(&self, visible: &Visible, most: usize) -> Result<Vec<ResolvedAlert>, sqlx::Error> {
        let state = self.recent_state().await?;
        let ended = self.ended_alerts(state.revision).await?;
        let oldest = self.now() - store::RETENTION_MS;
        let retained = ended.iter().take_while(|ended| ended.ended_at >= oldest);
        let found = retained.filter_map(|ended| visible_resolved(visible, &state.rules, ended));
        Ok(found.take(most).collect())
    }

    /// Visible rules, by severity and name.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn visible_rules(&self, visible: &Visible) -> Result<Vec<KeptRule>, sqlx::Error> {
        let mut rules = self.rules().await?;
        rules.retain(|stored| stored.rule.is_visible(visible));
        Ok(rules)
    }

    /// # Errors
    /// `NotFound`, also for a rule that the reader may not see, or the store does not answer.
    pub async fn visible_rule(&self, visible: &Visible, id: &str) -> Result<KeptRule, AlertError> {
        let stored = self.rule(id).await?;
        if stored.rule.is_visible(visible) {
            Ok(stored)
        } else {
            Err(AlertError::NotFound("rule"))
        }
    }

    /// Visible versions, newest first, up to the first invisible one: a difference to it would reveal it.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn visible_versions(
        &self,
        visible: &Visible,
        id: &RuleId,
    ) -> Result<Vec<RuleVersion>, sqlx::Error> {
        let versions = self.versions(id).await?;
        let is_visible = |version: &RuleVersion| {
            visible.is_everything()
                || self
                    .parse_stored(&version.draft)
                    .is_some_and(|rule| rule.is_visible(visible))
        };
        Ok(versions.into_iter().take_while(is_visible).collect())
    }
}

impl AlertState {
    fn summary(&self, visible: &Visible, now: i64) -> AlertSummary {
        let open = self.open_alerts(visible, now);
        AlertSummary {
            revision: match visible.is_everything() {
                true => self.full_revision(now),
                // The store's revision also counts changes that the reader may not see.
                false => self.scoped_revision(visible, &open),
            },
            firing_groups: firing_groups(&open),
        }
    }

    fn open_alerts(&self, visible: &Visible, now: i64) -> Vec<OpenAlert> {
        let silences = self.silences(now);
        let visible_alert = |kept: &StoredAlert| {
            let is_of_alert = |stored: &&KeptRule| stored.rule.id == kept.alert.rule;
            let rule = &self.rules.iter().find(is_of_alert)?.rule;
            let kind = rule.condition.kind;
            if !is_alert_visible(visible, &kept.alert, Some(kind)) {
                return None;
            }
            let full = notified_labels(rule, &kept.alert);
            let is_rule_visible = rule.is_visible(visible);
            let visible_rule = if is_rule_visible {
                rule.clone()
            } else {
                rule.limited()
            };
            let mut kept = kept.clone();
            if !is_rule_visible {
                // The grouping of a rule is hidden with the rule.
                kept.alert.notified_route = None;
            }
            kept.alert.why = visible_why(visible, &kept.alert.subject, kind, &kept.alert.why);
            Some(OpenAlert {
                is_silenced: silences.iter().any(|silence| silence.matches(&full)),
                fingerprint: fingerprint(&full),
                labels: if is_rule_visible {
                    full
                } else {
                    labels(&visible_rule, &kept.alert)
                },
                rule: visible_rule,
                is_rule_visible,
                kept,
            })
        };
        let mut open: Vec<OpenAlert> = self.open.iter().filter_map(visible_alert).collect();
        open.sort_by_key(OpenAlert::position);
        open
    }

    /// Revision for readers of everything. The end of a silence changes no row of the store.
    fn full_revision(&self, now: i64) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.revision.hash(&mut hasher);
        for silence in self.silences.iter().filter(|silence| silence.is_active(now)) {
            silence.id.hash(&mut hasher);
        }
        to_json_number(hasher.finish())
    }

    /// Revision of the visible alerts and rules. Readers with a scope see no silences.
    fn scoped_revision(&self, visible: &Visible, open: &[OpenAlert]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for open in open {
            let alert = &open.kept.alert;
            (alert.id, &alert.why, alert.is_firing(), open.is_silenced).hash(&mut hasher);
            open.kept.acked.hash(&mut hasher);
        }
        for stored in &self.rules {
            if !stored.is_gone && stored.rule.is_visible(visible) {
                (stored.rule.id.as_str(), stored.version).hash(&mut hasher);
            }
        }
        to_json_number(hasher.finish())
    }
}

/// A number in JSON has 53 bits.
const fn to_json_number(hash: u64) -> u64 {
    hash >> 12
}

impl OpenAlert {
    pub fn position(&self) -> AlertPosition {
        let alert = &self.kept.alert;
        (
            !alert.is_firing(),
            self.rule.severity,
            Reverse(alert.since()),
            alert.id,
        )
    }

    /// Key of its notification group.
    pub fn group(&self) -> String {
        group_of(&self.rule, &self.kept.alert, &self.labels).0
    }
}

fn visible_resolved(visible: &Visible, rules: &[KeptRule], ended: &EndedAlert) -> Option<ResolvedAlert> {
    let alert = &ended.alert;
    let stored = rules.iter().find(|stored| stored.rule.id == alert.rule);
    let rule = stored.map(|stored| &stored.rule);
    if !is_alert_visible(visible, alert, rule.map(|rule| rule.condition.kind)) {
        return None;
    }
    let rule = rule.map(|rule| match rule.is_visible(visible) {
        true => rule.clone(),
        false => rule.limited(),
    });
    Some(ResolvedAlert {
        rule_name: match &rule {
            Some(rule) => rule.name.clone(),
            None if visible.is_everything() => alert.rule.to_string(),
            None => "a removed rule".to_owned(),
        },
        rule,
        subject: alert.subject.clone(),
        fired_at: alert.since(),
        ended_at: ended.ended_at,
    })
}

fn firing_groups(open: &[OpenAlert]) -> u32 {
    let is_unhandled =
        |open: &&OpenAlert| open.kept.alert.is_firing() && !open.is_silenced && open.kept.acked.is_none();
    let firing = open.iter().filter(is_unhandled);
    let groups: BTreeSet<String> = firing.map(OpenAlert::group).collect();
    u32::try_from(groups.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use domain::access::{Grant, Grants, Role};
    use domain::alerts::{Matcher, Pattern, Silence};

    use super::*;

    fn silence(id: &str, ends_at: i64) -> Silence {
        Silence {
            id: id.to_owned(),
            matchers: vec![Matcher {
                label: "rule",
                value: Pattern::parse("coverage").unwrap(),
            }],
            starts_at: 0,
            ends_at,
            comment: String::new(),
            by: String::new(),
            suppressed: 0,
        }
    }

    #[test]
    fn the_end_of_a_silence_is_a_new_revision() {
        // No row of the store changes. Another silence goes on.
        let mut state = AlertState::default();
        state.silences = vec![silence("a", 5), silence("b", 9)];
        let revision = |now| state.summary(&Visible::default(), now).revision;
        assert_eq!(revision(1), revision(4));
        assert_ne!(revision(4), revision(5));
        assert_ne!(revision(5), revision(9));
        // Readers with a scope see no silences.
        let tenant = Visible::to(&Grants::new(vec![Grant {
            prefix: Some("tenant_1:".to_owned()),
            ..Grant::everywhere(Role::Viewer)
        }]));
        let scoped = |now| state.summary(&tenant, now).revision;
        assert_eq!(scoped(4), scoped(5));
    }
}
