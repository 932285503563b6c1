//! Filters of the alerts page, as in its URL.

use domain::alerts::AlertSeverity;
use domain::query::QueryError;

use super::data::GroupState;
use crate::links;

pub const PATH: &str = "/alerts";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertFilter {
    /// Empty: all but silenced and resolved.
    pub states: Vec<GroupState>,
    /// Empty: all.
    pub severities: Vec<AlertSeverity>,
    /// Id of the rule; empty: all.
    pub rule: String,
    pub backend: String,
    pub prefix: String,
    /// Part of a name, an owner or a sentence.
    pub q: String,
    /// Keys of expanded groups.
    pub open: Vec<String>,
}

impl AlertFilter {
    /// Empty values count as not given, because forms send them; names without a value are
    /// messages.
    ///
    /// # Errors
    /// Names the first invalid field.
    pub fn parse(search: &str) -> Result<Self, QueryError> {
        let mut filter = Self::default();
        for (name, value) in links::pairs(search) {
            if value.is_empty() {
                continue;
            }
            match name.as_str() {
                "state" => filter.states.push(GroupState::parse(&value).ok_or_else(|| {
                    QueryError::new("state", one_of(GroupState::ALL.map(GroupState::as_str)))
                })?),
                "severity" => filter
                    .severities
                    .push(AlertSeverity::parse(&value).ok_or_else(|| {
                        QueryError::new("severity", one_of(AlertSeverity::ALL.map(AlertSeverity::as_str)))
                    })?),
                "rule" => filter.rule = value,
                "backend" => filter.backend = value,
                "prefix" => filter.prefix = value,
                "q" => filter.q = value,
                "open" => filter.open.push(value),
                _ => {}
            }
        }
        filter.states.sort_unstable();
        filter.states.dedup();
        Ok(filter)
    }

    pub fn shows(&self, state: GroupState) -> bool {
        if self.states.is_empty() {
            !matches!(state, GroupState::Silenced | GroupState::Resolved)
        } else {
            self.states.contains(&state)
        }
    }

    pub fn has(&self, severity: AlertSeverity) -> bool {
        self.severities.is_empty() || self.severities.contains(&severity)
    }

    /// Anything but states and expanded groups.
    pub fn is_narrowed(&self) -> bool {
        !(self.severities.is_empty()
            && self.rule.is_empty()
            && self.backend.is_empty()
            && self.prefix.is_empty()
            && self.q.is_empty())
    }

    /// The same page with this state switched.
    #[must_use]
    pub fn toggled(&self, state: GroupState) -> Self {
        let shown = GroupState::ALL.into_iter();
        let shown = shown.filter(|other| self.shows(*other) != (*other == state));
        let states: Vec<GroupState> = shown.collect();
        let is_default = GroupState::ALL
            .iter()
            .all(|state| Self::default().shows(*state) == states.contains(state));
        Self {
            states: if is_default { Vec::new() } else { states },
            ..self.clone()
        }
    }

    #[must_use]
    pub fn toggled_severity(&self, severity: AlertSeverity) -> Self {
        let mut severities = self.severities.clone();
        match severities.iter().position(|shown| *shown == severity) {
            Some(at) => drop(severities.remove(at)),
            None => severities.push(severity),
        }
        Self {
            severities,
            ..self.clone()
        }
    }

    #[must_use]
    pub fn expanded(&self, key: &str) -> Self {
        let mut open = self.open.clone();
        match open.iter().position(|open_key| open_key == key) {
            Some(at) => drop(open.remove(at)),
            None => open.push(key.to_owned()),
        }
        Self { open, ..self.clone() }
    }

    pub fn is_open(&self, key: &str) -> bool {
        self.open.iter().any(|open_key| open_key == key)
    }

    /// URL of the page with this filter.
    pub fn url(&self) -> String {
        links::with_query(PATH, self.pairs())
    }

    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        pairs.extend(
            self.states
                .iter()
                .map(|state| ("state", state.as_str().to_owned())),
        );
        pairs.extend(
            self.severities
                .iter()
                .map(|severity| ("severity", severity.as_str().to_owned())),
        );
        for (name, value) in [
            ("rule", &self.rule),
            ("backend", &self.backend),
            ("prefix", &self.prefix),
            ("q", &self.q),
        ] {
            if !value.is_empty() {
                pairs.push((name, value.clone()));
            }
        }
        pairs.extend(self.open.iter().map(|key| ("open", key.clone())));
        pairs
    }
}

fn one_of<const N: usize>(values: [&str; N]) -> String {
    format!("must be one of {}", values.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_survives_its_url() {
        let search =
            "?state=firing&severity=critical&rule=long_held&prefix=jobs%2F&q=worker+7&open=a%2Fb&acked";
        let filter = AlertFilter::parse(search).unwrap();
        let url = filter.url();
        assert_eq!(
            AlertFilter::parse(url.trim_start_matches("/alerts")),
            Ok(filter.clone())
        );
        assert!(filter.shows(GroupState::Firing) && !filter.shows(GroupState::Pending));
        assert!(filter.is_open("a/b") && !filter.expanded("a/b").is_open("a/b"));
        assert_eq!(AlertFilter::parse("state=loud").unwrap_err().field, "state");
    }

    #[test]
    fn switching_a_state_twice_restores_the_default() {
        let filter = AlertFilter::default();
        let once = filter.toggled(GroupState::Silenced);
        assert!(once.shows(GroupState::Silenced) && once.shows(GroupState::Firing));
        assert_eq!(once.toggled(GroupState::Silenced), filter);
    }
}
