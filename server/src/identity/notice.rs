//! Notifications about users and rights: what every receiver is sent in the same transaction as the change.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::access::{Grant, Right};
use domain::escape::visible;
use domain::notice::{Notice, NoticeAlert, NoticeStatus};

use super::error::IdentityError;
use super::{secret, sessions::ms};
use crate::notify::fingerprint;

const ALERT: &str = "AccessChange";
/// An Alertmanager shows it for this long: there is nothing that could end it.
const SHOWN_FOR: Duration = Duration::from_secs(3600);

/// One change that receivers are sent.
pub struct AccessChange<'a> {
    /// The label `change`.
    pub change: &'static str,
    /// Name of the user, the token or the prefix.
    pub subject: &'a str,
    pub by: &'a str,
    pub summary: String,
    /// The console's page on it.
    pub path: &'static str,
}

impl AccessChange<'_> {
    /// # Errors
    /// There are no random numbers for its group, which is its own: no other message stands for it.
    pub fn notice(&self, now: i64) -> Result<Notice, IdentityError> {
        let labels = map(&[
            ("alertname", ALERT),
            ("severity", "warning"),
            ("change", self.change),
            ("subject", &visible(self.subject)),
        ]);
        let alert = NoticeAlert {
            status: NoticeStatus::Firing,
            annotations: map(&[
                ("summary", &self.summary),
                (
                    "description",
                    "If this was not agreed, undo it and end the sessions of its author.",
                ),
                ("who", &visible(self.by)),
            ]),
            starts_at: now,
            ends_at: Some(now + ms(SHOWN_FOR)),
            path: self.path.to_owned(),
            fingerprint: fingerprint(&labels),
            labels,
        };
        Ok(Notice {
            group: secret::id("access-change:")?,
            receivers: Vec::new(),
            group_labels: map(&[("alertname", ALERT), ("change", self.change)]),
            alerts: vec![alert],
            truncated: 0,
        })
    }
}

/// Grants of a role that administers or approves which were not there before.
pub(super) fn gained<'g>(before: impl Iterator<Item = &'g Grant>, after: &[Grant]) -> Vec<Grant> {
    let before: Vec<&Grant> = before.collect();
    let is_new = |grant: &&Grant| is_privileged(grant) && !before.contains(grant);
    after.iter().filter(is_new).cloned().collect()
}

fn is_privileged(grant: &Grant) -> bool {
    let rights = grant.role.rights();
    rights.contains(&Right::Approve) || rights.contains(&Right::Administer)
}

/// What receivers are sent of new privileged grants; none where there are none.
pub(super) fn roles_granted<'a>(
    by: &'a str,
    (kind, subject): (&'static str, &'a str),
    gained: &[Grant],
) -> Option<AccessChange<'a>> {
    if gained.is_empty() {
        return None;
    }
    let mut roles: Vec<&str> = gained.iter().map(|grant| grant.role.wire()).collect();
    roles.dedup();
    Some(AccessChange {
        change: "role_granted",
        subject,
        by,
        summary: format!(
            "{} granted {} to the {kind} {}",
            visible(by),
            roles.join(" and "),
            visible(subject)
        ),
        path: if kind == "token" {
            "/settings/tokens"
        } else {
            "/settings/people"
        },
    })
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}
