//! A validated alert rule: parsed once, its fields need no further checks.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::condition_kind::ConditionKind;
use super::pattern::Pattern;
use super::state_machine::Timing;
use super::template::Template;
use super::unit::Unit;
use crate::names::BackendName;
use crate::safety::SafetyClass;

/// `rule_` and letters, digits and `_`: stable, used in URLs and TOML.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuleId(Arc<str>);

impl RuleId {
    /// 1 to 64 characters of a-z, 0-9, `_` and `-`.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = (1..=64).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte));
        fits.then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

crate::wire_enum! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum AlertSeverity {
        Critical = "critical",
        Warning = "warning",
        Info = "info",
    }
}

crate::wire_enum! {
    /// Labels by which the alerts of one rule are grouped into a notification.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GroupBy {
        Backend = "backend",
        Prefix = "prefix",
        Owner = "owner",
        Resource = "resource",
    }
}

/// A condition with its thresholds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: ConditionKind,
    /// In the order of the kind's thresholds; `None`: left out.
    pub(super) values: Vec<Option<i64>>,
}

impl Condition {
    /// With the thresholds of the built-in rule.
    pub fn default_of(kind: ConditionKind) -> Self {
        Self {
            kind,
            values: kind.info().params.iter().map(|param| param.default).collect(),
        }
    }

    /// A threshold by name; `None` if left out.
    pub fn value(&self, name: &str) -> Option<i64> {
        let at = self
            .kind
            .info()
            .params
            .iter()
            .position(|param| param.name == name)?;
        self.values.get(at).copied().flatten()
    }

    /// The threshold that the chart shows.
    pub fn main_value(&self) -> Option<i64> {
        self.value(self.kind.main_param()?.name)
    }

    /// `held longer than 3 × the lock's own p95 hold time, or held longer than 2 h`
    pub fn sentence(&self) -> String {
        let info = self.kind.info();
        let shown = info.params.iter().zip(&self.values).filter_map(|(param, value)| {
            // A duration of zero is no threshold.
            let value = value.filter(|value| param.unit != Unit::Duration || *value > 0)?;
            Some(param.clause.replace('…', &param.unit.format(value)))
        });
        let shown = shown.collect::<Vec<String>>().join(", ");
        if shown.is_empty() {
            info.when.to_owned()
        } else {
            // If the first threshold is left out, the second is not an alternative.
            shown.strip_prefix("or ").unwrap_or(&shown).to_owned()
        }
    }
}

/// The locks that a rule covers. Empty: all locks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuleScope {
    pub backends: Vec<BackendName>,
    pub prefix: Pattern,
    pub owner: Pattern,
    pub safety: Option<SafetyClass>,
}

impl RuleScope {
    pub fn has_backend(&self, backend: &BackendName) -> bool {
        self.backends.is_empty() || self.backends.contains(backend)
    }

    /// `None` as owner: unknown.
    pub fn has(&self, backend: &BackendName, name: &[u8], owner: Option<&str>) -> bool {
        self.has_backend(backend) && self.prefix.covers(name) && self.owner.matches(owner.unwrap_or_default())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub id: RuleId,
    pub name: String,
    pub condition: Condition,
    pub scope: RuleScope,
    pub severity: AlertSeverity,
    pub timing: Timing,
    pub group_by: Vec<GroupBy>,
    /// Names of receivers; empty: all receivers.
    pub receivers: Vec<String>,
    /// A path of the console or a URL; empty: the section of the documentation.
    pub runbook: String,
    pub template: Option<Template>,
    /// The text as entered.
    pub template_text: String,
    pub is_enabled: bool,
}

impl Rule {
    /// URL or path of the runbook.
    pub fn runbook(&self) -> String {
        if self.runbook.is_empty() {
            format!("/docs/alerts#{}", self.condition.kind.as_str())
        } else {
            self.runbook.clone()
        }
    }
}
