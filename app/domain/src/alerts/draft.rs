//! A rule as it is written: in a form, in JSON, in TOML. Everything is text until it is parsed, so that each mistake can be
//! told with its field and its mend.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::builtin;
use super::fault::Fault;
use super::kind::{About, Kind};
use super::limits::{FOR_MS_MAX, NAME_CHARS_MAX, RECEIVERS_MAX, TEXT_CHARS_MAX};
use super::machine::Timing;
use super::pattern::Pattern;
use super::rule::{Condition, GroupBy, Rule, RuleId, Scope, Severity};
use super::template::{PLACEHOLDERS, Template};
use super::unit::Unit;
use crate::names::BackendName;
use crate::safety::SafetyClass;

/// What is left out is as in the built-in rule on that condition.
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
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub enabled: bool,
    /// Thresholds by name; an empty text leaves one out that may be.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "scalars"
    )]
    pub with: BTreeMap<String, String>,
}

const fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_yes(value: &bool) -> bool {
    *value
}

/// Numbers may be written without quotes.
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

/// What a rule may name.
pub struct Known<'a> {
    pub backends: &'a [String],
    /// Whether locks with this prefix are held or were seen; none: any prefix is taken.
    pub prefix: Option<&'a dyn Fn(&Pattern) -> bool>,
    /// Names of receivers; none: any name is taken.
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
            condition: kind.wire().to_owned(),
            severity: rule.severity.wire().to_owned(),
            for_: Some(Unit::Duration.text(rule.timing.for_ms)),
            keep_firing_for: Some(Unit::Duration.text(rule.timing.keep_ms)),
            backends: rule.scope.backends.iter().map(ToString::to_string).collect(),
            prefix: rule.scope.prefix.as_str().to_owned(),
            owner: rule.scope.owner.as_str().to_owned(),
            safety: rule.scope.safety.map_or("", SafetyClass::wire).to_owned(),
            group_by: Some(rule.group_by.iter().map(|by| by.wire().to_owned()).collect()),
            receivers: rule.receivers.clone(),
            runbook: rule.runbook.clone(),
            template: rule.template_text.clone(),
            enabled: rule.is_enabled,
            with: with.collect(),
        }
    }
}

/// # Errors
/// Everything that is wrong with it, each with its field.
pub fn parse(draft: &Draft, known: &Known<'_>) -> Result<Rule, Vec<Fault>> {
    let mut faults = Vec::new();
    let kind = Kind::parse(draft.condition.trim());
    let Some(base) = kind.and_then(builtin::of) else {
        let all: Vec<_> = Kind::ALL.into_iter().map(Kind::wire).collect();
        let mend = format!("use one of {}", all.join(", "));
        faults.push(Fault::new("condition", "is no condition", mend));
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

struct Reader<'a> {
    draft: &'a Draft,
    known: &'a Known<'a>,
    faults: &'a mut Vec<Fault>,
}

impl Reader<'_> {
    fn fault(&mut self, field: &str, why: impl Into<String>, mend: impl Into<String>) {
        self.faults.push(Fault::new(field, why, mend));
    }

    fn rule(&mut self, base: Rule) -> Rule {
        let draft = self.draft;
        let id = match draft.id.as_str() {
            // Given by whoever keeps it.
            "" => base.id.clone(),
            id => RuleId::parse(id).unwrap_or_else(|| {
                self.fault("id", "is no id", "use up to 64 characters of a-z, 0-9, _ and -");
                base.id.clone()
            }),
        };
        let (template, template_text) = self.template();
        Rule {
            id,
            name: self.name(base.name),
            condition: self.condition(base.condition),
            scope: self.scope(),
            severity: self.severity(base.severity),
            timing: Timing {
                for_ms: self.span("for", draft.for_.as_deref(), base.timing.for_ms),
                keep_ms: self.span(
                    "keep_firing_for",
                    draft.keep_firing_for.as_deref(),
                    base.timing.keep_ms,
                ),
            },
            group_by: self.group_by(base.group_by),
            receivers: self.receivers(),
            runbook: self.runbook(),
            template,
            template_text,
            is_enabled: draft.enabled,
        }
    }

    fn name(&mut self, default: String) -> String {
        let name = self.draft.name.trim();
        if name.is_empty() {
            return default;
        }
        if name.chars().count() > NAME_CHARS_MAX || name.chars().any(char::is_control) {
            self.fault(
                "name",
                "is too long or has control characters",
                format!("use at most {NAME_CHARS_MAX} printable characters"),
            );
        }
        name.to_owned()
    }

    fn condition(&mut self, base: Condition) -> Condition {
        let info = base.kind.info();
        let mut values = base.values;
        for (param, value) in info.params.iter().zip(&mut values) {
            let Some(text) = self.draft.with.get(param.name) else {
                continue;
            };
            let field = format!("with.{}", param.name);
            let bounds = format!(
                "use {} to {}",
                param.unit.text(param.min),
                param.unit.text(param.max)
            );
            *value = if text.trim().is_empty() {
                None
            } else {
                match param.unit.parse(text) {
                    Err(wanted) => {
                        self.fault(&field, "cannot be read", format!("write what {wanted}"));
                        None
                    }
                    Ok(number) if number < param.min || number > param.max => {
                        self.fault(&field, "is out of range", bounds);
                        None
                    }
                    Ok(number) => Some(number),
                }
            };
            let may_lack = matches!(
                (base.kind, param.name),
                (Kind::LongHeld, "times_p95" | "longer_than")
            );
            if value.is_none() && !may_lack && !self.faults.iter().any(|fault| fault.field == field) {
                self.fault(
                    &field,
                    "is missing",
                    format!(
                        "use {} to {}",
                        param.unit.text(param.min),
                        param.unit.text(param.max)
                    ),
                );
            }
        }
        self.no_other_thresholds(base.kind);
        let condition = Condition {
            kind: base.kind,
            values,
        };
        if base.kind == Kind::LongHeld
            && condition.value("times_p95").is_none()
            && condition.value("longer_than").is_none()
            && self.faults.is_empty()
        {
            self.fault(
                "with.longer_than",
                "and times_p95 are both missing, so that nothing would ever be long-held",
                "give one of them",
            );
        }
        condition
    }

    fn no_other_thresholds(&mut self, kind: Kind) {
        let info = kind.info();
        for name in self.draft.with.keys() {
            if kind.param(name).is_none() {
                let names: Vec<_> = info.params.iter().map(|param| param.name).collect();
                let mend = if names.is_empty() {
                    "leave it out".to_owned()
                } else {
                    format!("use {}", names.join(", "))
                };
                self.fault(
                    &format!("with.{name}"),
                    format!("is no threshold of {}", info.wire),
                    mend,
                );
            }
        }
    }

    fn span(&mut self, field: &str, text: Option<&str>, default: i64) -> i64 {
        let Some(text) = text.map(str::trim) else {
            return default;
        };
        match Unit::Duration.parse(if text.is_empty() { "0" } else { text }) {
            Err(wanted) => {
                self.fault(field, "cannot be read", format!("write what {wanted}"));
                default
            }
            Ok(ms) if !(0..=FOR_MS_MAX).contains(&ms) => {
                self.fault(field, "is out of range", "use 0s to 24h");
                default
            }
            Ok(ms) => ms,
        }
    }

    fn scope(&mut self) -> Scope {
        let mut backends = Vec::new();
        for name in self.draft.backends.iter().filter(|name| !name.is_empty()) {
            let is_known = self.known.backends.iter().any(|known| known == name);
            match BackendName::parse(name) {
                Ok(parsed) if is_known => backends.push(parsed),
                _ => {
                    let mend = format!("use {}", self.known.backends.join(", "));
                    self.fault("backends", format!("{name:?} is not configured"), mend);
                }
            }
        }
        let prefix = self.pattern("prefix", &self.draft.prefix);
        if let Some(is_known) = self.known.prefix
            && !prefix.is_everything()
            && !is_known(&prefix)
        {
            self.fault(
                "prefix",
                "covers no lock that is held or was seen",
                "mend it, or say that it is right although nothing is there yet",
            );
        }
        let safety = match self.draft.safety.trim() {
            "" => None,
            word => SafetyClass::parse(word).or_else(|| {
                self.fault(
                    "safety",
                    "is no safety class",
                    "use correctness, efficiency, or leave it out",
                );
                None
            }),
        };
        let about = Kind::parse(self.draft.condition.trim()).map(Kind::about);
        let is_of_lock = about == Some(About::Lock);
        for (field, text) in [("owner", &self.draft.owner), ("safety", &self.draft.safety)] {
            if !is_of_lock && !text.trim().is_empty() {
                self.fault(
                    field,
                    "does not fit: this condition is not about single locks",
                    "leave it out",
                );
            }
        }
        if about == Some(About::Backend) && !prefix.is_everything() {
            self.fault(
                "prefix",
                "does not fit: this condition is about whole backends",
                "leave it out",
            );
        }
        Scope {
            backends,
            prefix,
            owner: self.pattern("owner", &self.draft.owner),
            safety,
        }
    }

    fn pattern(&mut self, field: &str, text: &str) -> Pattern {
        Pattern::parse(text.trim()).unwrap_or_else(|why| {
            self.fault(field, why, "use a name, with * for the part that differs");
            Pattern::default()
        })
    }

    fn severity(&mut self, default: Severity) -> Severity {
        match self.draft.severity.trim() {
            "" => default,
            word => Severity::parse(word).unwrap_or_else(|| {
                self.fault("severity", "is no severity", "use critical, warning or info");
                default
            }),
        }
    }

    fn group_by(&mut self, default: Vec<GroupBy>) -> Vec<GroupBy> {
        let Some(words) = &self.draft.group_by else {
            return default;
        };
        let mut by = Vec::new();
        for word in words.iter().filter(|word| !word.is_empty()) {
            match GroupBy::parse(word) {
                Some(one) if !by.contains(&one) => by.push(one),
                Some(_) => {}
                None => self.fault(
                    "group_by",
                    format!("{word:?} is nothing to group by"),
                    "use backend, prefix, owner, resource",
                ),
            }
        }
        by
    }

    fn receivers(&mut self) -> Vec<String> {
        let names: Vec<String> = self
            .draft
            .receivers
            .iter()
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect();
        if names.len() > RECEIVERS_MAX || names.iter().any(|name| name.chars().count() > NAME_CHARS_MAX) {
            self.fault(
                "receivers",
                "are too many or too long",
                format!("use at most {RECEIVERS_MAX} names"),
            );
        }
        if let Some(known) = self.known.receivers {
            for name in names.iter().filter(|name| !known.contains(name)) {
                let mend = if known.is_empty() {
                    "configure it first".to_owned()
                } else {
                    format!("use {}", known.join(", "))
                };
                self.fault("receivers", format!("{name:?} is no receiver"), mend);
            }
        }
        names
    }

    fn runbook(&mut self) -> String {
        let text = self.draft.runbook.trim();
        let is_link = text.is_empty()
            || text.starts_with("https://")
            || text.starts_with("http://")
            || (text.starts_with('/') && !text.starts_with("//"));
        let is_short = text.chars().count() <= TEXT_CHARS_MAX;
        if !is_link || !is_short || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            self.fault(
                "runbook",
                "is no address",
                "use https://…, or a path of the console that begins with /",
            );
        }
        text.to_owned()
    }

    fn template(&mut self) -> (Option<Template>, String) {
        let text = self.draft.template.trim();
        if text.is_empty() {
            return (None, String::new());
        }
        if text.chars().count() > TEXT_CHARS_MAX {
            self.fault(
                "template",
                "is too long",
                format!("use at most {TEXT_CHARS_MAX} characters"),
            );
        }
        let parsed = Template::parse(text);
        let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
        let parsed = parsed.map_err(|why| {
            self.fault(
                "template",
                why,
                format!("use {known}, and {{{{ for a brace of its own"),
            );
        });
        (parsed.ok(), text.to_owned())
    }
}
