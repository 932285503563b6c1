//! Acting alone is told to everyone: what fires with the row of the act, and ends when somebody else has reviewed it.

use std::collections::BTreeMap;

use domain::notice::{Notice, NoticeAlert, NoticeStatus};
use domain::unlock::Unlock;

use super::note;
use crate::notify::fingerprint;

const ALERT: &str = "ForcedUnlockBreakGlass";

/// To every receiver, from the moment of the act; `reviewed` by whom, and when, once it is.
pub(super) fn notice(
    unlock: &Unlock,
    second_reason: &str,
    acted_at: i64,
    reviewed: Option<(&str, i64)>,
) -> Notice {
    let resource = note::short(&unlock.resource);
    let labels = map(&[
        ("alertname", ALERT),
        ("severity", "critical"),
        ("backend", unlock.backend.as_str()),
        ("resource", &resource),
        ("unlock", &unlock.id),
    ]);
    let by = domain::escape::visible(&unlock.by_name);
    let summary = format!("{by} breaks {resource} on {} alone (break-glass)", unlock.backend);
    let description = match reviewed {
        None => {
            "Nobody else has approved it. It stays flagged until somebody else has reviewed it.".to_owned()
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
