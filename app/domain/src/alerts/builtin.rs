//! The rules of a new installation: one for each condition, all of them on.

use super::kind::{About, Kind};
use super::machine::Timing;
use super::rule::{Condition, GroupBy, Rule, RuleId, Scope};

/// In the order of the documentation.
pub fn builtin() -> Vec<Rule> {
    Kind::ALL.into_iter().filter_map(of).collect()
}

/// The built-in rule on one condition.
pub(super) fn of(kind: Kind) -> Option<Rule> {
    let info = kind.info();
    Some(Rule {
        id: RuleId::parse(info.wire)?,
        name: info.title.to_owned(),
        condition: Condition::default_of(kind),
        scope: Scope::default(),
        severity: info.severity,
        timing: Timing {
            for_ms: info.for_ms,
            keep_ms: info.keep_ms,
        },
        group_by: match info.about {
            About::Lock => vec![GroupBy::Backend, GroupBy::Owner],
            About::Prefix => vec![GroupBy::Backend, GroupBy::Prefix],
            About::Backend => vec![GroupBy::Backend],
        },
        receivers: Vec::new(),
        runbook: String::new(),
        template: None,
        template_text: String::new(),
        is_enabled: true,
    })
}
