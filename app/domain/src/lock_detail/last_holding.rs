//! The last holding of a lock without a known holder, from its events.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{EventKind, SeenEvent};
use crate::names::OwnerId;
use crate::time_format;
use crate::token::FencingToken;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LastHolding {
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    /// How and when it ended; `None`: the end was not observed.
    pub end: Option<(EventKind, DateTime<Utc>)>,
    /// Who released it by force, if recorded.
    pub released_by: Option<String>,
    /// Observed begin.
    pub began: Option<DateTime<Utc>>,
    /// Time of the last observation.
    pub seen_at: Option<DateTime<Utc>>,
}

impl LastHolding {
    /// From the observed events, newest first.
    pub fn from_events(seen: &[SeenEvent]) -> Self {
        let is_end = |kind: EventKind| {
            matches!(
                kind,
                EventKind::Released | EventKind::Expired | EventKind::Revoked
            )
        };
        let is_grant = |kind: EventKind| {
            matches!(
                kind,
                EventKind::Acquired | EventKind::Reclaimed | EventKind::ShareAcquired
            )
        };
        let newest = seen
            .iter()
            .find(|event| is_end(event.kind) || is_grant(event.kind));
        let Some(newest) = newest else {
            return Self::default();
        };
        let is_its = |event: &&SeenEvent| {
            is_grant(event.kind)
                && event.at <= newest.at
                && match (event.fencing_token, newest.fencing_token) {
                    (Some(one), Some(other)) => one == other,
                    _ => event.owner_id == newest.owner_id,
                }
        };
        Self {
            owner: newest.owner_id.clone(),
            token: newest.fencing_token,
            end: is_end(newest.kind).then_some((newest.kind, newest.at)),
            released_by: None,
            began: seen.iter().find(is_its).map(|event| event.at),
            seen_at: Some(newest.at),
        }
    }

    /// One line: since when it is free, and its last owner.
    pub fn sentence(&self) -> String {
        let owner = self
            .owner
            .as_ref()
            .map_or_else(|| "an unknown owner".to_owned(), ToString::to_string);
        match (self.end, self.seen_at) {
            (Some((_, at)), _) => format!("free since {}, last held by {owner}", time_format::dated(at)),
            (None, Some(at)) => format!(
                "since when is not known; {owner} was granted it at {} and the end was not observed",
                time_format::dated(at)
            ),
            (None, None) => "its last holder is older than the retention".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: EventKind, at_s: i64, owner: &str, token: u64) -> SeenEvent {
        SeenEvent {
            kind,
            at: DateTime::from_timestamp(at_s, 0).unwrap(),
            owner_id: Some(OwnerId::new(owner)),
            fencing_token: Some(FencingToken::new(token)),
            waited_ms: None,
            trace_id: None,
            not_before: None,
        }
    }

    #[test]
    fn the_last_holding_is_the_one_before_the_newest_end() {
        // Two holdings, then a rejected write of the first owner.
        let seen = [
            event(EventKind::Rejected, 150, "w1", 1),
            event(EventKind::Expired, 140, "w2", 2),
            event(EventKind::Acquired, 80, "w2", 2),
            event(EventKind::Released, 70, "w1", 1),
            event(EventKind::Acquired, 10, "w1", 1),
        ];
        let last = LastHolding::from_events(&seen);
        assert_eq!(
            (last.owner.clone(), last.token),
            (seen[1].owner_id.clone(), Some(FencingToken::new(2)))
        );
        assert_eq!(
            (last.began, last.end),
            (Some(seen[2].at), Some((EventKind::Expired, seen[1].at)))
        );
        assert_eq!(
            last.sentence(),
            "free since 1970-01-01 00:02:20 UTC, last held by w2"
        );
    }

    #[test]
    fn an_unobserved_end_is_said() {
        let seen = [event(EventKind::Acquired, 10, "w1", 1)];
        let sentence = LastHolding::from_events(&seen).sentence();
        assert!(
            sentence.starts_with("since when is not known; w1 was granted it"),
            "{sentence}"
        );
        let none = LastHolding::default().sentence();
        assert_eq!(none, "its last holder is older than the retention");
    }
}
