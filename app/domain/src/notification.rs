//! A notification when alerts fire or resolve: one group of alerts, in Alertmanager's terms.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One group, as one message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Key of the group; constant for the lifetime of the group.
    pub group: String,
    /// Names of its receivers; empty: all receivers.
    pub receivers: Vec<String>,
    pub group_labels: BTreeMap<String, String>,
    /// Resolved ones first: they are sent only once.
    pub alerts: Vec<NoticeAlert>,
    /// Number of alerts beyond those listed.
    pub truncated: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoticeAlert {
    pub status: NoticeStatus,
    /// Identity: `alertname`, `severity`, `backend`, `prefix`, …; never a value or a time,
    /// which would make it another alert.
    pub labels: BTreeMap<String, String>,
    /// Texts: `summary`, `description`, `runbook_url`, …
    pub annotations: BTreeMap<String, String>,
    /// Milliseconds since 1970.
    pub starts_at: i64,
    pub ends_at: Option<i64>,
    /// The console's page on it, as a path that begins with a slash.
    pub path: String,
    /// Sixteen hex digits of the labels: equal labels, equal fingerprint.
    pub fingerprint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeStatus {
    Firing,
    Resolved,
}

impl Notice {
    /// Number of alerts, including those not listed.
    pub const fn size(&self) -> u64 {
        self.truncated.saturating_add(self.alerts.len() as u64)
    }

    /// Lists the first alerts only and counts the others.
    pub fn truncate(&mut self, listed_max: usize) {
        let cut = self.alerts.len().saturating_sub(listed_max);
        self.alerts.truncate(listed_max);
        self.truncated = self.truncated.saturating_add(cut as u64);
    }

    /// Whether it has a resolved alert.
    pub fn has_end(&self) -> bool {
        let is_end = |alert: &NoticeAlert| alert.status == NoticeStatus::Resolved;
        self.alerts.iter().any(is_end)
    }

    /// Firing as long as any of its alerts is.
    pub fn status(&self) -> NoticeStatus {
        let fires = |alert: &NoticeAlert| alert.status == NoticeStatus::Firing;
        if self.alerts.iter().any(fires) {
            NoticeStatus::Firing
        } else {
            NoticeStatus::Resolved
        }
    }
}
