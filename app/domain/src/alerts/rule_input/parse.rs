//! Parses a draft field by field and collects all errors.

use super::super::condition_kind::ConditionKind;
use super::super::field_error::FieldError;
use super::super::limits::{FOR_MS_MAX, NAME_CHARS_MAX};
use super::super::rule::{Condition, Rule, RuleId};
use super::super::state_machine::Timing;
use super::super::unit::Unit;
use super::{Draft, KnownNames};

pub(super) struct Reader<'a> {
    pub(super) draft: &'a Draft,
    pub(super) known: &'a KnownNames<'a>,
    pub(super) faults: &'a mut Vec<FieldError>,
}

impl Reader<'_> {
    pub(super) fn fault(&mut self, field: &str, why: impl Into<String>, remedy: impl Into<String>) {
        self.faults.push(FieldError::new(field, why, remedy));
    }

    pub(super) fn rule(&mut self, base: Rule) -> Rule {
        let draft = self.draft;
        let id = match draft.id.as_str() {
            // The store assigns the id.
            "" => base.id.clone(),
            id => RuleId::parse(id).unwrap_or_else(|| {
                self.fault(
                    "id",
                    "is not an id",
                    "use up to 64 characters of a-z, 0-9, _ and -",
                );
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
                (ConditionKind::LongHeld, "times_p95" | "longer_than")
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
        if base.kind == ConditionKind::LongHeld
            && condition.value("times_p95").is_none()
            && condition.value("longer_than").is_none()
            && self.faults.is_empty()
        {
            self.fault(
                "with.longer_than",
                "and times_p95 are both missing",
                "give one of them",
            );
        }
        condition
    }

    fn no_other_thresholds(&mut self, kind: ConditionKind) {
        for name in self.draft.with.keys() {
            if kind.param(name).is_none() {
                let names: Vec<_> = kind.info().params.iter().map(|param| param.name).collect();
                let remedy = if names.is_empty() {
                    "leave it out".to_owned()
                } else {
                    format!("use {}", names.join(", "))
                };
                self.fault(
                    &format!("with.{name}"),
                    format!("is not a threshold of {}", kind.as_str()),
                    remedy,
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
}
