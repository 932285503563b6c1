//! Rules and alerts as shown to a reader with a limited scope: only rules about names in scope,
//! and alerts without counts, names or texts from outside it.

use super::condition_kind::ConditionKind;
use super::evaluate::{Active, Subject};
use super::rule::{Rule, RuleId};
use super::silence::Matcher;
use crate::access::Visible;
use crate::history::series;
use crate::history::template::literal;
use crate::lease::Scope;
use crate::names::BackendName;

/// The sentence of an alert on a backend that does not answer, without the error text of the
/// backend.
const UNREACHABLE: &str = "The backend does not answer. Alerts about its locks keep their state.";

impl Rule {
    /// Every name that the rule covers is in the reader's scope, on each of its backends.
    pub fn is_visible(&self, visible: &Visible) -> bool {
        if visible.is_everything() {
            return true;
        }
        let is_within = |scope: &Scope| self.scope.prefix.stays_within(scope);
        if self.scope.backends.is_empty() {
            return is_within(&visible.on_every_backend());
        }
        self.scope
            .backends
            .iter()
            .all(|backend| is_within(&visible.on(backend)))
    }

    /// The rule for a reader who may not see it: its condition, without name, message and
    /// runbook.
    #[must_use]
    pub fn limited(&self) -> Self {
        let kind = self.condition.kind;
        Self {
            id: RuleId::parse(kind.as_str()).unwrap_or_else(|| self.id.clone()),
            name: kind.info().title.to_owned(),
            condition: self.condition.clone(),
            scope: super::rule::RuleScope::default(),
            severity: self.severity,
            timing: self.timing,
            group_by: Vec::new(),
            receivers: Vec::new(),
            runbook: String::new(),
            template: None,
            template_text: String::new(),
            is_enabled: self.is_enabled,
        }
    }
}

/// Whether a reader sees an alert. `kind` is that of its rule, `None` if it was deleted.
pub fn is_alert_visible(visible: &Visible, alert: &Active, kind: Option<ConditionKind>) -> bool {
    let scope = visible.on(alert.subject.backend());
    match &alert.subject {
        Subject::Lock(lock) => scope.covers_bytes(lock.resource.as_bytes()),
        Subject::Prefix { backend, prefix } => {
            // A template may also stand for names outside the scope; the prefix of the rule that found it is
            // narrower. The rule may have another one by now.
            let of_rule = literal(&alert.rule_prefix);
            series::is_visible(visible, backend, prefix)
                || of_rule.is_some_and(|own| !own.is_empty() && scope.covers(own))
        }
        Subject::Backend(_) if scope.is_everything() => true,
        // The other conditions on backends count or name locks of every scope.
        Subject::Backend(_) => {
            !scope.is_nothing()
                && matches!(
                    kind,
                    Some(ConditionKind::BackendUnreachable | ConditionKind::ClockOffset)
                )
        }
    }
}

/// The sentence of an alert for a reader. An unreachable backend's sentence may contain its
/// address and error text.
pub fn visible_why(visible: &Visible, subject: &Subject, kind: ConditionKind, why: &str) -> String {
    let is_whole = visible.on(subject.backend()).is_everything();
    if kind == ConditionKind::BackendUnreachable && !is_whole {
        UNREACHABLE.to_owned()
    } else {
        why.to_owned()
    }
}

/// Whether everything that the matchers cover lies within one of these places (backend and
/// names; no backend: all backends).
pub fn silence_stays_within(
    matchers: &[Matcher],
    places: impl IntoIterator<Item = (Option<BackendName>, Scope)>,
) -> bool {
    let with_label = |label: &'static str| matchers.iter().filter(move |matcher| matcher.label == label);
    let is_on = |backend: &BackendName| {
        with_label("backend").any(|matcher| matcher.value.as_str() == backend.as_str())
    };
    let is_of = |scope: &Scope| {
        scope.is_everything()
            || with_label("prefix")
                .chain(with_label("resource"))
                .any(|matcher| matcher.value.stays_within(scope))
    };
    places
        .into_iter()
        .any(|(backend, scope)| backend.as_ref().is_none_or(is_on) && is_of(&scope))
}

#[cfg(test)]
mod tests;
