//! Alerts that fired and ended since a moment, for timelines and flapping groups.

use domain::access::Visible;
use domain::alerts::{Active, Rule, group_of, is_alert_visible, labels, notified_labels};

use super::Alerts;

/// One firing that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedFiring {
    pub rule: Rule,
    /// Key of its notification group.
    pub group: String,
    pub fired_at: i64,
    pub ended_at: i64,
}

impl Alerts {
    /// Visible firings of existing rules that ended since then, newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn ended_since(&self, visible: &Visible, since: i64) -> Result<Vec<EndedFiring>, sqlx::Error> {
        let state = self.recent_state().await?;
        let ended = self.ended_alerts(state.revision).await?;
        let recent = ended.iter().take_while(|ended| ended.ended_at >= since);
        let shown = recent.filter_map(|ended| {
            let alert = &ended.alert;
            let stored = state.rules.iter().find(|stored| stored.rule.id == alert.rule)?;
            let rule = &stored.rule;
            if !is_alert_visible(visible, alert, Some(rule.condition.kind)) {
                return None;
            }
            let (rule, group) = if rule.is_visible(visible) {
                (
                    rule.clone(),
                    group_of(rule, alert, &notified_labels(rule, alert)).0,
                )
            } else {
                let limited = rule.limited();
                // The grouping of a rule is hidden with the rule.
                let alert = Active {
                    notified_route: None,
                    ..alert.clone()
                };
                let group = group_of(&limited, &alert, &labels(&limited, &alert)).0;
                (limited, group)
            };
            Some(EndedFiring {
                group,
                fired_at: alert.since(),
                rule,
                ended_at: ended.ended_at,
            })
        });
        Ok(shown.collect())
    }
}
