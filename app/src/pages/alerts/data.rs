//! Data of the alerts page: groups with their worst alert, counts for the filters, firing
//! history, silences, deliveries.

use domain::alerts::AlertSeverity;
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;
use serde::{Deserialize, Serialize};

use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::console::ConsoleFuture;

/// Number of the newest resolved alerts that are read. The filter and the scope of the user select among them.
pub const RESOLVED_READ_MAX: usize = 1_000;
/// Bars of the last hour, each of 2 minutes.
pub const RECENT_BARS: usize = 30;
pub const RECENT_MS: i64 = 3_600_000;
/// Range of the firing history, in milliseconds.
pub const HISTORY_MS: i64 = 6 * 3_600_000;
/// Range in which changes count as flapping, in milliseconds.
pub const FLAPPING_MS: i64 = 30 * 60_000;
/// Firings of a group within [`FLAPPING_MS`] that count as flapping.
pub const FLAPPING_MIN: usize = 6;

domain::wire_enum! {
    /// State of a group, worst first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    pub enum GroupState {
        Firing = "firing",
        Acknowledged = "acknowledged",
        Pending = "pending",
        Flapping = "flapping",
        Silenced = "silenced",
        Resolved = "resolved",
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertsData {
    /// Matching groups, worst first.
    pub groups: Vec<AlertGroup>,
    /// Matching groups beyond the limit.
    pub more: u64,
    /// Groups of each state, in the order of [`GroupState::ALL`], whatever the filter.
    pub states: [u32; 6],
    /// Groups of each severity, in the order of its variants, whatever the filter.
    pub severities: [u32; 3],
    /// Alerts of all groups that are not resolved.
    pub alerts: u64,
    /// Choices of the filters.
    pub rules: Vec<(String, String)>,
    pub backends: Vec<String>,
    pub prefixes: Vec<String>,
    /// Shown with the state `resolved`.
    pub resolved: Vec<ResolvedAlert>,
    pub history: Vec<RuleHistory>,
    pub rule_lines: Vec<RuleLine>,
    pub silences: Vec<SilenceRow>,
    /// `None`: the reader may not see receivers.
    pub deliveries: Option<Deliveries>,
    /// Milliseconds since 1970, by the server's clock.
    pub now: i64,
    pub may_act: bool,
    pub may_edit: bool,
    /// Rules and silences outside the reader's scope are not listed.
    pub is_limited: bool,
}

/// One notification: the alerts of one rule and group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertGroup {
    pub key: String,
    pub state: GroupState,
    pub severity: AlertSeverity,
    pub rule: String,
    /// `None` if the reader may not open the rule.
    pub rule_path: Option<String>,
    /// Values of the labels that the group shares.
    pub labels: String,
    pub condition: String,
    pub runbook: String,
    pub alerts: u32,
    pub firing: u32,
    /// Firing alerts in each bar of the last hour, oldest first.
    pub recent: Vec<u32>,
    /// Start of the oldest alert's phase.
    pub since: i64,
    pub for_ms: i64,
    pub worst: AlertMember,
    /// Of an expanded group; limited.
    pub members: Vec<AlertMember>,
    pub receivers: Vec<String>,
    /// User and time, if every firing alert is acknowledged.
    pub acked: Option<(String, i64)>,
    /// Firings within [`FLAPPING_MS`].
    pub changes: u32,
    /// URL of a new silence with the group's labels as matchers.
    pub silence_path: String,
    pub may_act: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertMember {
    pub id: i64,
    pub subject: String,
    /// URL of the lock, prefix or backend.
    pub path: String,
    pub owner: Option<String>,
    pub why: String,
    pub since: i64,
    pub is_firing: bool,
    pub is_silenced: bool,
    pub acked_by: Option<String>,
    pub silence_path: String,
}

/// The owner for display, by the URL of the subject: a prefix and a backend have no owner.
pub fn owner_text<'a>(owner: Option<&'a str>, path: &str) -> &'a str {
    let is_lock = path.starts_with("/locks/");
    owner.unwrap_or(if is_lock { "unknown" } else { "none" })
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvedAlert {
    pub rule: String,
    pub subject: String,
    pub path: String,
    pub fired_at: i64,
    pub ended_at: i64,
}

/// Firings of one rule in [`HISTORY_MS`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleHistory {
    pub rule: String,
    pub severity: AlertSeverity,
    /// Merged intervals, in milliseconds since 1970.
    pub firings: Vec<(i64, i64)>,
    pub count: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleLine {
    pub id: String,
    pub name: String,
    pub severity: AlertSeverity,
    pub sentence: String,
    pub is_enabled: bool,
    pub firing: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilenceRow {
    pub id: String,
    pub matchers: String,
    pub comment: String,
    pub by: String,
    pub ends_at: i64,
    pub suppressed: u64,
    /// URL of a new silence with the same matchers and comment.
    pub clone_path: String,
    pub may_end: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deliveries {
    /// The last message of each receiver.
    pub last: Vec<LastDelivery>,
    pub dead: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastDelivery {
    pub receiver: String,
    pub state: DeliveryState,
    pub at: i64,
    pub attempts: i64,
    pub next_at: i64,
    pub answer: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeliveryState {
    Delivered,
    Retrying,
    Dead,
    Nothing,
}

/// What a silence would cover now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilencePreview {
    /// Invalid matchers: the reason and what to write.
    pub fault: Option<String>,
    /// Limited.
    pub alerts: Vec<AlertMember>,
    pub total: u32,
    /// Number of covered groups, and the number of listed alerts if not all are listed.
    pub extent: String,
    /// Receivers of the covered alerts, and whether other groups still notify them.
    pub receivers: Vec<(String, bool)>,
    pub now: i64,
}

/// Port: the server implements it, for the caller of a request.
pub trait AlertsPort {
    /// `search` is the query string of the page.
    fn alerts(&self, search: String) -> ConsoleFuture<'_, AlertsData>;
    /// `search` are the fields of the silence form.
    fn silence_preview(&self, search: String) -> ConsoleFuture<'_, SilencePreview>;
}

/// `search` is the query string of the page: its filter.
#[server(name = GetAlerts, prefix = "/api", endpoint = "alerts", input = GetUrl, output = EncodedResponse)]
pub async fn alerts(search: String) -> Result<AlertsData, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.alerts(search).await)
}

/// `search` are the fields of the silence form as a query string.
#[server(name = GetSilencePreview, prefix = "/api", endpoint = "silence-preview", input = GetUrl, output = EncodedResponse)]
pub async fn silence_preview(search: String) -> Result<SilencePreview, ApiError> {
    let context = crate::api::error::from_context()?;
    context.set_status(context.pages()?.silence_preview(search).await)
}

#[cfg(test)]
mod tests {
    use domain::names::{BackendName, LockId, Resource, Source};

    use super::*;
    use crate::links;

    #[test]
    fn only_the_owner_of_a_lock_is_unknown() {
        let lock = |name: &str| {
            links::lock_path(&LockId {
                backend: BackendName::builtin(),
                source: Source::fixed("lease"),
                resource: Resource::from(name.to_owned()),
            })
        };
        assert_eq!(owner_text(Some("worker-7"), &lock("jobs/a")), "worker-7");
        for name in ["jobs/a", "..", ""] {
            assert_eq!(owner_text(None, &lock(name)), "unknown");
        }
        for path in [links::prefix("jobs:"), links::prefix(""), "/backends".to_owned()] {
            assert_eq!(owner_text(None, &path), "none");
        }
    }
}
