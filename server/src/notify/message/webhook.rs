//! Alertmanager's webhook format, version 4, so that its consumers work unchanged.

use std::collections::BTreeMap;

use domain::notification::{Notice, NoticeAlert, NoticeStatus};
use serde_json::{Value, json};

use super::{link, moment};

/// Alertmanager's value for an open end.
const NO_END: &str = "0001-01-01T00:00:00Z";

pub(super) fn body(notice: &Notice, receiver: &str, home: &str) -> Value {
    let alerts = notice.alerts.iter().map(|alert| {
        json!({
            "status": status(alert.status),
            "labels": alert.labels,
            "annotations": alert.annotations,
            "startsAt": moment(alert.starts_at),
            "endsAt": alert.ends_at.map_or_else(|| NO_END.to_owned(), moment),
            "generatorURL": link(home, alert),
            "fingerprint": alert.fingerprint,
        })
    });
    json!({
        "version": "4",
        "groupKey": notice.group,
        "truncatedAlerts": notice.truncated,
        "status": status(notice.status()),
        "receiver": receiver,
        "groupLabels": notice.group_labels,
        "commonLabels": common(&notice.alerts, |alert| &alert.labels),
        "commonAnnotations": common(&notice.alerts, |alert| &alert.annotations),
        "externalURL": home,
        "alerts": alerts.collect::<Vec<_>>(),
    })
}

pub(super) const fn status(status: NoticeStatus) -> &'static str {
    match status {
        NoticeStatus::Firing => "firing",
        NoticeStatus::Resolved => "resolved",
    }
}

/// Labels common to all alerts.
fn common(
    alerts: &[NoticeAlert],
    texts: impl Fn(&NoticeAlert) -> &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let Some((first, rest)) = alerts.split_first() else {
        return BTreeMap::new();
    };
    let mut common = texts(first).clone();
    common.retain(|name, value| rest.iter().all(|alert| texts(alert).get(name) == Some(value)));
    common
}
