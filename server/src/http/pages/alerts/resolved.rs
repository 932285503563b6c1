//! Resolved alerts of the alerts page, by its filter.

use app::pages::alerts::alert_filter::AlertFilter;
use app::pages::alerts::data::{RESOLVED_READ_MAX, ResolvedAlert as ResolvedRow};
use domain::access::Visible;
use domain::alerts::Subject;
use domain::history::template::template;

use crate::alerts::{ResolvedAlert, path};
use crate::http::state::Services;

const ROWS_MAX: usize = 50;

impl Services {
    pub(super) async fn resolved_rows(
        &self,
        visible: &Visible,
        filter: &AlertFilter,
    ) -> Result<Vec<ResolvedRow>, sqlx::Error> {
        let read = if visible.is_everything() && !filter.is_narrowed() {
            ROWS_MAX
        } else {
            RESOLVED_READ_MAX
        };
        let resolved = self.alerts.resolved(visible, read).await?;
        let matching = resolved.into_iter().filter(|alert| matches_filter(filter, alert));
        let rows = matching.take(ROWS_MAX).map(|alert| ResolvedRow {
            rule: alert.rule_name,
            path: path(&alert.subject),
            subject: alert.subject.display_name(),
            fired_at: alert.fired_at,
            ended_at: alert.ended_at,
        });
        Ok(rows.collect())
    }
}

fn matches_filter(filter: &AlertFilter, alert: &ResolvedAlert) -> bool {
    let (name, q) = (alert.subject.display_name(), filter.q.to_lowercase());
    let rule = alert.rule.as_ref();
    (filter.rule.is_empty() || rule.is_some_and(|rule| rule.id.as_str() == filter.rule))
        && (filter.severities.is_empty() || rule.is_some_and(|rule| filter.has(rule.severity)))
        && (filter.backend.is_empty() || filter.backend == alert.subject.backend().as_str())
        && (name.starts_with(&filter.prefix) || prefix(&alert.subject) == filter.prefix)
        && (name.to_lowercase().contains(&q) || alert.rule_name.to_lowercase().contains(&q))
}

/// The label `prefix` of an alert.
fn prefix(subject: &Subject) -> String {
    match subject {
        Subject::Lock(lock) => template(lock.resource.as_bytes()),
        Subject::Prefix { prefix, .. } => prefix.clone(),
        Subject::Backend(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use domain::alerts::builtin;
    use domain::names::{BackendName, LockId, Resource, Source};

    use super::*;

    #[test]
    fn every_filter_applies_to_resolved_alerts() {
        let rule = builtin().into_iter().find(|rule| rule.id.as_str() == "no_ttl");
        let rule = rule.unwrap();
        let severity = rule.severity.as_str();
        let alert = ResolvedAlert {
            rule_name: rule.name.clone(),
            rule: Some(rule),
            subject: Subject::Lock(LockId {
                backend: BackendName::builtin(),
                source: Source::fixed("lease"),
                resource: Resource::from("jobs/17".to_owned()),
            }),
            fired_at: 1,
            ended_at: 2,
        };
        let matches = |search: &str| matches_filter(&AlertFilter::parse(search).unwrap(), &alert);
        for search in [
            "",
            "rule=no_ttl",
            "backend=builtin",
            "prefix=jobs/",
            "prefix=jobs/*",
            "q=JOBS",
        ] {
            assert!(matches(search), "{search}");
        }
        assert!(matches(&format!("severity={severity}")));
        for search in ["rule=expired", "backend=cache", "prefix=work/", "q=worker"] {
            assert!(!matches(search), "{search}");
        }
    }
}
