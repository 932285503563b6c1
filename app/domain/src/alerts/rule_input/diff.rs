//! Differences between two versions of a rule, with the labels of the form.

use super::super::condition_kind::ConditionKind;
use super::Draft;

/// One changed field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftChange {
    pub field: &'static str,
    pub before: String,
    pub after: String,
}

impl Draft {
    /// In the order of the form.
    pub fn changes_since(&self, before: &Self) -> Vec<DraftChange> {
        let before_fields = before.fields();
        let before_value = |field: &str| {
            before_fields
                .iter()
                .find(|(name, _)| *name == field)
                .map(|(_, value)| value.clone())
        };
        let changes = self.fields().into_iter().filter_map(|(field, after)| {
            let before = before_value(field).unwrap_or_default();
            (before != after).then_some(DraftChange { field, before, after })
        });
        changes.collect()
    }

    fn fields(&self) -> Vec<(&'static str, String)> {
        let params = ConditionKind::parse(&self.condition)
            .map(|kind| kind.info().params)
            .unwrap_or_default();
        let thresholds = params.iter().map(|param| {
            let value = self.with.get(param.name).cloned();
            (param.label, value.unwrap_or_default())
        });
        let other_fields = [
            ("for", self.for_.clone().unwrap_or_default()),
            (
                "keep firing for",
                self.keep_firing_for.clone().unwrap_or_default(),
            ),
            ("backend", self.backends.join(", ")),
            ("prefix", self.prefix.clone()),
            ("owner", self.owner.clone()),
            ("safety class", self.safety.clone()),
            ("severity", self.severity.clone()),
            ("grouped by", self.group_by.clone().unwrap_or_default().join(", ")),
            ("to", self.receivers.join(", ")),
            ("runbook", self.runbook.clone()),
            ("message", self.template.clone()),
            ("on", if self.enabled { "yes" } else { "no" }.to_owned()),
        ];
        let first_fields = [("name", self.name.clone()), ("condition", self.condition.clone())];
        first_fields
            .into_iter()
            .chain(thresholds)
            .chain(other_fields)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_lists_only_changed_fields() {
        // A threshold and the switch; equal versions have no changes.
        let rule = super::super::builtin::builtin_rule(ConditionKind::FencingRejections).unwrap();
        let before = Draft::from(&rule);
        let mut after = before.clone();
        assert_eq!(after.changes_since(&before), []);
        after.with.insert("count".to_owned(), "50".to_owned());
        after.enabled = false;
        let changes: Vec<_> = after
            .changes_since(&before)
            .into_iter()
            .map(|change| (change.field, change.before, change.after))
            .collect();
        let row = |field, before: &str, after: &str| (field, before.to_owned(), after.to_owned());
        assert_eq!(
            changes,
            [
                row("At least … rejected writes", "1", "50"),
                row("on", "yes", "no")
            ]
        );
    }
}
