//! A rule as it is kept: parsed once, so that nothing in it can be wrong any more.

use std::fmt;
use std::sync::Arc;

use super::kind::Kind;
use super::machine::Timing;
use super::pattern::Pattern;
use super::template::Template;
use super::unit::Unit;
use crate::names::BackendName;
use crate::safety::SafetyClass;

/// `rule_` and letters, digits and `_`: stable, in addresses and TOML.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Critical,
    Warning,
    Info,
}

impl Severity {
    pub const ALL: [Self; 3] = [Self::Critical, Self::Warning, Self::Info];

    pub const fn wire(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::Warning => "warning",
            Self::Info => "info",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.wire() == wire)
    }
}

/// By which labels alerts of one rule become one notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupBy {
    Backend,
    Prefix,
    Owner,
    Resource,
}

impl GroupBy {
    pub const ALL: [Self; 4] = [Self::Backend, Self::Prefix, Self::Owner, Self::Resource];

    /// The label's name.
    pub const fn wire(self) -> &'static str {
        match self {
            Self::Backend => "backend",
            Self::Prefix => "prefix",
            Self::Owner => "owner",
            Self::Resource => "resource",
        }
    }

    pub fn parse(wire: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.wire() == wire)
    }
}

/// A condition with its thresholds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub kind: Kind,
    /// In the order of the kind's thresholds; none: left out.
    pub(super) values: Vec<Option<i64>>,
}

impl Condition {
    /// With the thresholds of the built-in rule.
    pub fn default_of(kind: Kind) -> Self {
        Self {
            kind,
            values: kind.info().params.iter().map(|param| param.default).collect(),
        }
    }

    /// A threshold by its name; none where it is left out.
    pub fn value(&self, name: &str) -> Option<i64> {
        let at = self
            .kind
            .info()
            .params
            .iter()
            .position(|param| param.name == name)?;
        self.values.get(at).copied().flatten()
    }

    /// The threshold that a series is drawn against.
    pub fn main_value(&self) -> Option<i64> {
        self.value(self.kind.main_param()?.name)
    }

    /// `longer than 3 × its own p95, or longer than 2 h`
    pub fn sentence(&self) -> String {
        let info = self.kind.info();
        let shown = info.params.iter().zip(&self.values).filter_map(|(param, value)| {
            // Every duration is at least none at all.
            let value = value.filter(|value| param.unit != Unit::Duration || *value > 0)?;
            let value = param.unit.shown(value);
            Some(match param.said {
                Some(said) => said.replace('…', &value),
                None => format!("{} {value}", param.words),
            })
        });
        let shown = shown.collect::<Vec<String>>().join(", ");
        if shown.is_empty() {
            info.when.to_owned()
        } else {
            // Where the first threshold is left out, the second is no alternative.
            shown.strip_prefix("or ").unwrap_or(&shown).to_owned()
        }
    }
}

/// Where a rule looks. Empty: everywhere.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scope {
    pub backends: Vec<BackendName>,
    pub prefix: Pattern,
    pub owner: Pattern,
    pub safety: Option<SafetyClass>,
}

impl Scope {
    pub fn has_backend(&self, backend: &BackendName) -> bool {
        self.backends.is_empty() || self.backends.contains(backend)
    }

    /// Of a lock, where the owner is known.
    pub fn has(&self, backend: &BackendName, name: &[u8], owner: Option<&str>) -> bool {
        self.has_backend(backend) && self.prefix.covers(name) && self.owner.matches(owner.unwrap_or_default())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    pub id: RuleId,
    pub name: String,
    pub condition: Condition,
    pub scope: Scope,
    pub severity: Severity,
    pub timing: Timing,
    pub group_by: Vec<GroupBy>,
    /// By name; empty: to every one.
    pub receivers: Vec<String>,
    /// A path of the console or an address; empty: the section of the documentation.
    pub runbook: String,
    pub template: Option<Template>,
    /// As it was typed.
    pub template_text: String,
    pub is_enabled: bool,
}

impl Rule {
    /// Where the runbook is.
    pub fn runbook(&self) -> String {
        if self.runbook.is_empty() {
            format!("/docs/alerts#{}", self.condition.kind.wire())
        } else {
            self.runbook.clone()
        }
    }
}
