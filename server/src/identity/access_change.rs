//! Notifications about users and permissions, sent to every receiver in the same transaction as the change.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::access::{Grant, Permission};
use domain::duration::millis;
use domain::escape::visible;
use domain::notification::{Notice, NoticeAlert, NoticeStatus};

use super::error::IdentityError;
use crate::notify::fingerprint;
use runtime::random;

const ALERT: &str = "AccessChange";
/// How long an Alertmanager shows it: no event resolves it.
const SHOWN_FOR: Duration = Duration::from_secs(3600);

/// A change that is sent to receivers.
pub struct AccessChange<'a> {
    /// The label `change`.
    pub change: &'static str,
    /// Name of the user, the token, the prefix or the receiver; `console` for all of it.
    pub subject: &'a str,
    pub by: &'a str,
    pub summary: String,
    /// Path of the console page about it.
    pub path: &'static str,
}

impl AccessChange<'_> {
    /// # Errors
    /// The random number generator failed. Each message has a group id of its own.
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
            ends_at: Some(now + millis(SHOWN_FOR)),
            path: self.path.to_owned(),
            fingerprint: fingerprint(&labels),
            labels,
        };
        Ok(Notice {
            group: random::prefixed_id("access-change:"),
            receivers: Vec::new(),
            group_labels: map(&[("alertname", ALERT), ("change", self.change)]),
            alerts: vec![alert],
            truncated: 0,
        })
    }
}

/// New grants of an administering or approving role.
pub(super) fn new_privileged_grants<'g>(
    before: impl Iterator<Item = &'g Grant>,
    after: &[Grant],
) -> Vec<Grant> {
    let before: Vec<&Grant> = before.collect();
    let is_new = |grant: &&Grant| is_privileged(grant) && !before.contains(grant);
    after.iter().filter(is_new).cloned().collect()
}

fn is_privileged(grant: &Grant) -> bool {
    let rights = grant.role.rights();
    rights.contains(&Permission::Approve) || rights.contains(&Permission::Administer)
}

/// The notification about new privileged grants; `None` if there are none.
pub(super) fn roles_granted<'a>(
    by: &'a str,
    (kind, subject): (&'static str, &'a str),
    gained: &[Grant],
) -> Option<AccessChange<'a>> {
    if gained.is_empty() {
        return None;
    }
    let mut roles: Vec<&str> = gained.iter().map(|grant| grant.role.as_str()).collect();
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
            "/settings/users"
        },
    })
}

/// The notification about a token that can end the leases of another one, and its new privileged grants.
pub(super) fn leases_inherited<'a>(
    by: &'a str,
    token: &'a str,
    predecessor: &str,
    gained: &[Grant],
) -> AccessChange<'a> {
    let predecessor = visible(predecessor);
    match roles_granted(by, ("token", token), gained) {
        Some(granted) => AccessChange {
            summary: format!("{}, which inherits the leases of {predecessor}", granted.summary),
            ..granted
        },
        None => AccessChange {
            change: "leases_inherited",
            subject: token,
            by,
            summary: format!(
                "{} created the token {}, which inherits the leases of {predecessor}",
                visible(by),
                visible(token)
            ),
            path: "/settings/tokens",
        },
    }
}

/// The notification about forced unlocks that are stopped or allowed again.
pub(super) fn read_only_switched(by: &str, read_only: bool) -> AccessChange<'_> {
    let (change, done) = match read_only {
        true => (
            "read_only_set",
            "made the console read-only: no lock can be released by force",
        ),
        false => (
            "read_only_cleared",
            "ended read-only: locks can be released by force again",
        ),
    };
    AccessChange {
        change,
        subject: "console",
        by,
        summary: format!("{} {done}", visible(by)),
        path: "/audit?action=READ_ONLY_CHANGE",
    }
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}
