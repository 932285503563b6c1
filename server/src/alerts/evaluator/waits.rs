//! The rules on deadlocks, evaluated on the graph of waits.

use domain::alerts::limits::ALERTS_PER_RULE_MAX;
use domain::alerts::{Active, ConditionKind, Rule, Subject, evaluate_deadlocks};

use super::Evaluator;
use super::scan::ScanSnapshot;
use runtime::clock::ClockReading;

impl Evaluator {
    /// Locks of a cycle that is only possible now keep their alerts as they are.
    pub(super) fn scan_waits(
        &self,
        rules: &[Rule],
        before: &[Active],
        now: ClockReading,
        seen: &mut ScanSnapshot,
    ) {
        let on_deadlocks = |rule: &Rule| rule.is_enabled && rule.condition.kind == ConditionKind::Deadlock;
        let graph = match rules.iter().any(on_deadlocks) {
            true => self.alerts.inventory.wait_graph(now),
            false => return,
        };
        for (index, rule) in rules.iter().enumerate().filter(|(_, rule)| on_deadlocks(rule)) {
            let result = evaluate_deadlocks(index, rule, &graph, now.tick);
            let is_open = |subject: &Subject| {
                before
                    .iter()
                    .any(|alert| alert.rule == rule.id && alert.subject == *subject)
            };
            let unknown = result.unknown.into_iter().map(Subject::Lock).filter(is_open);
            seen.unknown
                .extend(unknown.map(|subject| (rule.id.clone(), subject)));
            for (at, found) in result.found.into_iter().enumerate() {
                if at >= ALERTS_PER_RULE_MAX && !is_open(&found.subject) {
                    seen.left_out.add(rule, &found.subject, found.owner.as_deref());
                } else {
                    seen.found.push(found);
                }
            }
        }
    }
}
