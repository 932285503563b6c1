//! What changed, by kind: a page refetches only for the kinds that it shows.

use serde::{Deserialize, Serialize};

/// A set of kinds of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Topics(u8);

impl Topics {
    pub const NONE: Self = Self(0);
    /// Locks and backends.
    pub const INVENTORY: Self = Self(1);
    /// Alerts, rules, silences and notifications.
    pub const ALERTS: Self = Self(2);
    /// Entries of the audit log and fencing rejections: unlocks, users, tokens, settings.
    pub const ACTIVITY: Self = Self(4);
    pub const ALL: Self = Self(7);

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Revision of each kind, as far as the caller may know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Revisions {
    /// 0: not known.
    pub inventory: u64,
    pub alerts: u64,
    pub activity: u64,
}

impl Revisions {
    /// Kinds that differ. A restarted server starts its revisions again: compared for
    /// difference, not for order.
    pub fn changed_since(self, before: Self) -> Topics {
        let topics_if = |is_changed: bool, topics| if is_changed { topics } else { Topics::NONE };
        topics_if(self.inventory != before.inventory, Topics::INVENTORY)
            .and(topics_if(self.alerts != before.alerts, Topics::ALERTS))
            .and(topics_if(self.activity != before.activity, Topics::ACTIVITY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differing_revisions_are_changes() {
        let before = Revisions {
            inventory: 7,
            alerts: 3,
            activity: 0,
        };
        let after = Revisions { alerts: 2, ..before };
        assert_eq!(after.changed_since(before), Topics::ALERTS);
        assert_eq!(before.changed_since(before), Topics::NONE);
        assert!(Topics::ALL.has(Topics::ACTIVITY) && !Topics::ALERTS.has(Topics::INVENTORY));
    }
}
