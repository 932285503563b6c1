//! Alerts that fired and ended since a moment, for timelines and flapping groups.

use domain::access::Visible;
use domain::alerts::{Rule, group_of, is_alert_visible, labels, notified_labels};

use super::{Alerts, store};

/// Ended alerts that are read, the newest.
const ROWS_MAX: i64 = 20_000;

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
        let rules = self.recent_state().await?.rules();
        let ended = store::ended_since(&self.db, since, ROWS_MAX).await?;
        let shown = ended.into_iter().filter_map(|(mut alert, ended_at)| {
            let rule = rules.iter().find(|rule| rule.id == alert.rule)?;
            if !is_alert_visible(visible, &alert.subject, Some(rule)) {
                return None;
            }
            let (rule, labels) = if rule.is_visible(visible) {
                (rule.clone(), notified_labels(rule, &alert))
            } else {
                alert.notified_route = None;
                let limited = rule.limited();
                let labels = labels(&limited, &alert);
                (limited, labels)
            };
            Some(EndedFiring {
                group: group_of(&rule, &alert, &labels).0,
                fired_at: alert.since(),
                rule,
                ended_at,
            })
        });
        Ok(shown.collect())
    }
}
