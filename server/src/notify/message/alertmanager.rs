//! `POST /api/v2/alerts`: an array of alerts. A firing one lapses unless resent; a resolved one has its end.

use domain::notification::{NoticeAlert, NoticeStatus};
use serde_json::{Map, Value, json};
use url::Url;

use super::{MessageTarget, link, moment};

pub(super) fn body(alerts: &[NoticeAlert], target: MessageTarget<'_>) -> Value {
    let alerts = alerts.iter().map(|alert| {
        let ends_at = match (alert.status, alert.ends_at) {
            (NoticeStatus::Firing, None) => target.lapses_at.timestamp_millis(),
            (NoticeStatus::Firing | NoticeStatus::Resolved, Some(at)) => at,
            (NoticeStatus::Resolved, None) => target.now.timestamp_millis(),
        };
        json!({
            "labels": valid_names(&alert.labels),
            "annotations": valid_names(&alert.annotations),
            "startsAt": moment(alert.starts_at),
            // Alertmanager rejects an end before the start.
            "endsAt": moment(ends_at.max(alert.starts_at)),
            "generatorURL": link(target.home, alert),
        })
    });
    alerts.collect()
}

/// Label names valid for Alertmanager 0.25; labels without a value are dropped.
fn valid_names<'t>(texts: impl IntoIterator<Item = (&'t String, &'t String)>) -> Map<String, Value> {
    let texts = texts.into_iter().filter(|(_, value)| !value.is_empty());
    texts.map(|(name, value)| (name_of(name), json!(value))).collect()
}

fn name_of(name: &str) -> String {
    let valid = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
    let valid: String = valid.collect();
    if valid.starts_with(|c: char| c.is_ascii_digit()) || valid.is_empty() {
        return format!("_{valid}");
    }
    valid
}

/// The endpoint below the path of the configured address.
pub(super) fn endpoint(peer: &Url) -> Url {
    let mut url = peer.clone();
    url.set_path(&format!("{}/api/v2/alerts", peer.path().trim_end_matches('/')));
    url
}
