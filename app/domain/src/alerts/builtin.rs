//! The rules of a new installation: one per condition, all enabled.

use super::condition_kind::{ConditionKind, SubjectKind};
use super::rule::{Condition, GroupBy, Rule, RuleId, RuleScope};
use super::state_machine::Timing;

/// In the order of the documentation.
pub fn builtin() -> Vec<Rule> {
    ConditionKind::ALL.into_iter().filter_map(builtin_rule).collect()
}

/// The built-in rule on one condition.
pub(super) fn builtin_rule(kind: ConditionKind) -> Option<Rule> {
    let info = kind.info();
    Some(Rule {
        id: RuleId::parse(kind.as_str())?,
        name: info.title.to_owned(),
        condition: Condition::default_of(kind),
        scope: RuleScope::default(),
        severity: info.severity,
        timing: Timing {
            for_ms: info.for_ms,
            keep_ms: info.keep_ms,
        },
        // One cause, such as a dead host, raises alerts on many locks of several owners.
        group_by: match info.about {
            SubjectKind::Lock | SubjectKind::Prefix => Vec::new(),
            SubjectKind::Backend => vec![GroupBy::Backend],
        },
        receivers: Vec::new(),
        runbook: String::new(),
        template: None,
        template_text: String::new(),
        is_enabled: true,
    })
}
