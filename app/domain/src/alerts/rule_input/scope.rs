//! Parses the scope, the receivers and the message of a rule.

use super::super::condition_kind::{ConditionKind, SubjectKind};
use super::super::limits::{NAME_CHARS_MAX, RECEIVERS_MAX, TEXT_CHARS_MAX};
use super::super::pattern::Pattern;
use super::super::rule::{AlertSeverity, GroupBy, RuleScope};
use super::super::template::{PLACEHOLDERS, Template};
use super::parse::Reader;
use crate::names::BackendName;
use crate::safety::SafetyClass;

impl Reader<'_> {
    pub(super) fn scope(&mut self) -> RuleScope {
        let mut backends = Vec::new();
        for name in self.draft.backends.iter().filter(|name| !name.is_empty()) {
            let is_known = self.known.backends.iter().any(|known| known == name);
            match BackendName::parse(name) {
                Ok(parsed) if is_known => backends.push(parsed),
                _ => {
                    let remedy = format!("use {}", self.known.backends.join(", "));
                    self.fault("backends", format!("{name:?} is not configured"), remedy);
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
                "fix it, or accept a prefix without locks",
            );
        }
        let safety = match self.draft.safety.trim() {
            "" => None,
            text => SafetyClass::parse(text).or_else(|| {
                self.fault(
                    "safety",
                    "is not a safety class",
                    "use correctness, efficiency, or leave it out",
                );
                None
            }),
        };
        let about = ConditionKind::parse(self.draft.condition.trim()).map(ConditionKind::about);
        let is_of_lock = about == Some(SubjectKind::Lock);
        for (field, text) in [("owner", &self.draft.owner), ("safety", &self.draft.safety)] {
            if !is_of_lock && !text.trim().is_empty() {
                self.fault(
                    field,
                    "does not fit: this condition is not about single locks",
                    "leave it out",
                );
            }
        }
        if about == Some(SubjectKind::Backend) && !prefix.is_everything() {
            self.fault(
                "prefix",
                "does not fit: this condition is about whole backends",
                "leave it out",
            );
        }
        RuleScope {
            backends,
            prefix,
            owner: self.pattern("owner", &self.draft.owner),
            safety,
        }
    }

    fn pattern(&mut self, field: &str, text: &str) -> Pattern {
        Pattern::parse(text.trim()).unwrap_or_else(|why| {
            self.fault(field, why, "use a name, with * as wildcard");
            Pattern::default()
        })
    }

    pub(super) fn severity(&mut self, default: AlertSeverity) -> AlertSeverity {
        match self.draft.severity.trim() {
            "" => default,
            text => AlertSeverity::parse(text).unwrap_or_else(|| {
                self.fault("severity", "is not a severity", "use critical, warning or info");
                default
            }),
        }
    }

    pub(super) fn group_by(&mut self, default: Vec<GroupBy>) -> Vec<GroupBy> {
        let Some(names) = &self.draft.group_by else {
            return default;
        };
        let mut fields = Vec::new();
        for name in names.iter().filter(|name| !name.is_empty()) {
            match GroupBy::parse(name) {
                Some(field) if !fields.contains(&field) => fields.push(field),
                Some(_) => {}
                None => self.fault(
                    "group_by",
                    format!("{name:?} is nothing to group by"),
                    "use backend, prefix, owner, resource",
                ),
            }
        }
        fields
    }

    pub(super) fn receivers(&mut self) -> Vec<String> {
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
                let remedy = if known.is_empty() {
                    "configure it first".to_owned()
                } else {
                    format!("use {}", known.join(", "))
                };
                self.fault("receivers", format!("{name:?} is not a receiver"), remedy);
            }
        }
        names
    }

    pub(super) fn runbook(&mut self) -> String {
        let text = self.draft.runbook.trim();
        let is_link = text.is_empty()
            || text.starts_with("https://")
            || text.starts_with("http://")
            || (text.starts_with('/') && !text.starts_with("//"));
        let is_short = text.chars().count() <= TEXT_CHARS_MAX;
        if !is_link || !is_short || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            self.fault(
                "runbook",
                "is not an address",
                "use https://…, or a path of the console that begins with /",
            );
        }
        text.to_owned()
    }

    pub(super) fn template(&mut self) -> (Option<Template>, String) {
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
