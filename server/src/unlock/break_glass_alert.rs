//! Notification of break-glass unlocks: fires with the audit entry of the execution, resolves when another user has
//! reviewed it.

use std::collections::BTreeMap;

use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use domain::unlock::Unlock;

use super::audit_entries;
use crate::notify::fingerprint;

const ALERT: &str = "ForcedUnlockBreakGlass";

/// For every receiver; `reviewed`: by whom and when.
pub(super) fn notice(
    unlock: &Unlock,
    second_reason: &str,
    acted_at: i64,
    reviewed: Option<(&str, i64)>,
) -> Notice {
    let resource = audit_entries::short(&unlock.resource);
    let labels = map(&[
        ("alertname", ALERT),
        ("severity", "critical"),
        ("backend", unlock.backend.as_str()),
        ("resource", &resource),
        ("unlock", &unlock.id),
    ]);
    let by = domain::escape::visible(&unlock.by_name);
    let summary = format!(
        "{by} unlocks {resource} on {} without a second approver (break-glass)",
        unlock.backend
    );
    let description = match reviewed {
        None => {
            "No second approver has approved it. It stays open until another user has reviewed it.".to_owned()
        }
        Some((reviewer, _)) => format!("{} has reviewed it.", domain::escape::visible(reviewer)),
    };
    let alert = NoticeAlert {
        status: match reviewed {
            None => NoticeStatus::Firing,
            Some(_) => NoticeStatus::Resolved,
        },
        annotations: map(&[
            ("summary", &summary),
            ("description", &description),
            ("who", &by),
            ("reason", &domain::escape::visible(&unlock.reason)),
            ("why_alone", &domain::escape::visible(second_reason)),
        ]),
        starts_at: acted_at,
        ends_at: reviewed.map(|(_, at)| at),
        path: format!("/unlocks/{}", unlock.id),
        fingerprint: fingerprint(&labels),
        labels,
    };
    Notice {
        group: format!("break-glass:{}", unlock.id),
        receivers: Vec::new(),
        group_labels: map(&[("alertname", ALERT), ("unlock", &unlock.id)]),
        alerts: vec![alert],
        truncated: 0,
    }
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}
