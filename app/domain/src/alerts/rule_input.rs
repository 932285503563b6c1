//! Input of a rule from a form, JSON or TOML. Values are text until parsed, so that each error
//! names its field and a remedy.

mod diff;
mod parse;
mod scope;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use self::parse::Reader;
use super::builtin;
use super::condition_kind::ConditionKind;
use super::field_error::FieldError;
use super::pattern::Pattern;
use super::rule::Rule;
use super::unit::Unit;
use crate::safety::SafetyClass;

pub use diff::DraftChange;

/// Fields that are left out take the value of the built-in rule on that condition.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    pub condition: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub severity: String,
    #[serde(rename = "for", default, skip_serializing_if = "Option::is_none")]
    pub for_: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_firing_for: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub safety: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receivers: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub runbook: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template: String,
    #[serde(default = "default_true", skip_serializing_if = "is_true")]
    pub enabled: bool,
    /// Thresholds by name; an empty text leaves out an optional one.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "scalars"
    )]
    pub with: BTreeMap<String, String>,
}

const fn default_true() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

/// Accepts numbers without quotes.
fn scalars<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Scalar {
        Text(String),
        Whole(i64),
        Number(f64),
    }
    let read = BTreeMap::<String, Scalar>::deserialize(from)?;
    let text = |value| match value {
        Scalar::Text(text) => text,
        Scalar::Whole(number) => number.to_string(),
        Scalar::Number(number) => number.to_string(),
    };
    Ok(read
        .into_iter()
        .map(|(name, value)| (name, text(value)))
        .collect())
}

/// Names that a rule may refer to.
pub struct KnownNames<'a> {
    pub backends: &'a [String],
    /// Whether locks with this prefix are known; `None`: any prefix is accepted.
    pub prefix: Option<&'a dyn Fn(&Pattern) -> bool>,
    /// Names of receivers; `None`: any name is accepted.
    pub receivers: Option<&'a [String]>,
}

impl From<&Rule> for Draft {
    fn from(rule: &Rule) -> Self {
        let kind = rule.condition.kind;
        let with = kind.info().params.iter().map(|param| {
            let value = rule.condition.value(param.name);
            let text = value.map(|value| param.unit.text(value)).unwrap_or_default();
            (param.name.to_owned(), text)
        });
        Self {
            id: rule.id.as_str().to_owned(),
            name: rule.name.clone(),
            condition: kind.as_str().to_owned(),
            severity: rule.severity.as_str().to_owned(),
            for_: Some(Unit::Duration.text(rule.timing.for_ms)),
            keep_firing_for: Some(Unit::Duration.text(rule.timing.keep_ms)),
            backends: rule.scope.backends.iter().map(ToString::to_string).collect(),
            prefix: rule.scope.prefix.as_str().to_owned(),
            owner: rule.scope.owner.as_str().to_owned(),
            safety: rule.scope.safety.map_or("", SafetyClass::as_str).to_owned(),
            group_by: Some(rule.group_by.iter().map(|by| by.as_str().to_owned()).collect()),
            receivers: rule.receivers.clone(),
            runbook: rule.runbook.clone(),
            template: rule.template_text.clone(),
            enabled: rule.is_enabled,
            with: with.collect(),
        }
    }
}

/// # Errors
/// All validation errors.
pub fn parse(draft: &Draft, known: &KnownNames<'_>) -> Result<Rule, Vec<FieldError>> {
    let mut faults = Vec::new();
    let kind = ConditionKind::parse(draft.condition.trim());
    let Some(base) = kind.and_then(builtin::builtin_rule) else {
        let all: Vec<_> = ConditionKind::ALL
            .into_iter()
            .map(ConditionKind::as_str)
            .collect();
        let remedy = format!("use one of {}", all.join(", "));
        faults.push(FieldError::new("condition", "is not a condition", remedy));
        return Err(faults);
    };
    let mut reader = Reader {
        draft,
        known,
        faults: &mut faults,
    };
    let rule = reader.rule(base);
    if faults.is_empty() { Ok(rule) } else { Err(faults) }
}
