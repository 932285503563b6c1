//! Facts of a released lock on its page: its last holding, above its history.

use chrono::{DateTime, Utc};
use domain::lock_detail::{EventKind, SeenEvent};
use domain::names::{OwnerId, Source};
use domain::reported::Reported;
use domain::token::FencingToken;
use domain::{format, time_format};

use super::html_writer::Markup;

/// The last holding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
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

/// Inputs of the page.
pub struct ReleasedLock<'a> {
    pub last: &'a LastHolding,
    /// `NotApplicable`: the lock is free. `Unknown`: its holder cannot be determined, with the
    /// reason.
    pub holder: Reported<()>,
    pub source: &'a Source,
    /// Time at which the holder was read.
    pub looked_at: DateTime<Utc>,
    /// The newest token ever granted, if the backend counts tokens.
    pub newest_token: Option<FencingToken>,
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
        let is_grant = |kind: EventKind| matches!(kind, EventKind::Acquired | EventKind::Reclaimed);
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

/// The row of facts.
pub fn facts(past: &ReleasedLock<'_>) -> Markup {
    let mut it = Markup::new();
    it.wrap("dl", &[("class", "facts")], |it| {
        cell(it, "held by", |it| held_by(it, past));
        cell(it, "free since", |it| free_since(it, past));
        cell(it, "last held by", |it| last_held_by(it, past.last));
        cell(it, "held for", |it| held_for(it, past.last));
        cell(it, "last fencing token", |it| token(it, past));
        cell(it, "as of", |it| {
            time(it, past.looked_at);
        });
        cell(it, "source", |it| {
            it.text(past.source.as_str());
        });
    });
    it
}

fn cell(it: &mut Markup, label: &str, value: impl FnOnce(&mut Markup)) {
    it.wrap("div", &[], |it| {
        it.text_element("dt", &[], label);
        it.wrap("dd", &[], value);
    });
}

fn write_missing(it: &mut Markup, word: &str, why: &str) {
    it.text_element("span", &[("class", "none")], word);
    it.text_element("small", &[], why);
}

fn time(it: &mut Markup, at: DateTime<Utc>) {
    it.text_element(
        "time",
        &[("datetime", &time_format::iso(at))],
        &time_format::dated(at),
    );
}

fn held_by(it: &mut Markup, past: &ReleasedLock<'_>) {
    match &past.holder {
        Reported::Unknown(why) => write_missing(it, "unknown", &domain::escape::visible(why)),
        Reported::Value(()) | Reported::NotApplicable(_) => {
            it.text("no holder");
        }
    }
}

fn free_since(it: &mut Markup, past: &ReleasedLock<'_>) {
    match (past.last.end, &past.holder) {
        (_, Reported::Unknown(_)) => write_missing(it, "unknown", "free or held: unknown"),
        (Some((_, at)), _) => {
            time(it, at);
            let ms = (past.looked_at - at).num_milliseconds().max(0);
            it.text_element("small", &[], &format!("for {} by then", format::age(ms)));
        }
        (None, _) => write_missing(it, "unknown", "end of the last holding not observed"),
    }
}

fn last_held_by(it: &mut Markup, last: &LastHolding) {
    let Some(owner) = &last.owner else {
        let why = if last.seen_at.is_some() {
            "not reported by the backend"
        } else {
            "history does not go back that far"
        };
        return write_missing(it, "unknown", why);
    };
    it.wrap("bdi", &[("class", "long")], |it| {
        it.text(&domain::escape::visible(owner.as_str()));
    });
    let how = match last.end {
        Some((EventKind::Expired, at)) => format!("its lease had expired by {}", time_format::dated(at)),
        Some((EventKind::Revoked, at)) => match &last.released_by {
            Some(by) => format!(
                "released by force by {} at {}",
                domain::escape::visible(by),
                time_format::dated(at)
            ),
            None => format!("released by force at {}", time_format::dated(at)),
        },
        Some((_, at)) => format!("released at {}", time_format::dated(at)),
        None => "end not observed".to_owned(),
    };
    it.text_element("small", &[], &how);
}

fn held_for(it: &mut Markup, last: &LastHolding) {
    match last.began.zip(last.end) {
        Some((began, (_, ended))) => {
            it.text(&format::age((ended - began).num_milliseconds().max(0)));
            it.text_element("small", &[], &format!("from {}", time_format::dated(began)));
        }
        None => write_missing(it, "unknown", "start or end unknown"),
    }
}

fn token(it: &mut Markup, past: &ReleasedLock<'_>) {
    match past.newest_token.max(past.last.token) {
        Some(token) => {
            it.text(&token.to_string());
            it.text_element("small", &[], "the next grant has a higher one");
        }
        None => write_missing(it, "unknown", "none reported"),
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

    fn last_holding_text(seen: &[SeenEvent], holder: Reported<()>) -> (String, String) {
        let last = LastHolding::from_events(seen);
        let past = ReleasedLock {
            last: &last,
            holder,
            source: &Source::fixed("lease"),
            looked_at: DateTime::from_timestamp(200, 0).unwrap(),
            newest_token: None,
        };
        (last.sentence(), facts(&past).into_string())
    }

    #[test]
    fn the_last_holding_is_shown_and_names_are_escaped() {
        // Two holdings, then a rejected write; the last owner has a hostile name.
        let bad = "\u{202e}<script>";
        let seen = [
            event(EventKind::Rejected, 150, "w1", 1),
            event(EventKind::Expired, 140, bad, 2),
            event(EventKind::Acquired, 80, bad, 2),
            event(EventKind::Released, 70, "w1", 1),
            event(EventKind::Acquired, 10, "w1", 1),
        ];
        let (sentence, html) = last_holding_text(&seen, Reported::absent("no holder"));
        assert!(
            sentence.starts_with("free since 1970-01-01 00:02:20"),
            "{sentence}"
        );
        assert!(
            html.contains("no holder") && html.contains("for 1 m 00 s by then"),
            "{html}"
        );
        assert!(
            html.contains("its lease had expired by") && html.contains(">1 m 00 s<small>from"),
            "{html}"
        );
        assert!(!html.contains("<script") && !html.contains('\u{202e}'), "{html}");
    }

    #[test]
    fn a_forced_release_names_its_actor() {
        let seen = [
            event(EventKind::Revoked, 140, "w1", 1),
            event(EventKind::Acquired, 10, "w1", 1),
        ];
        let last = LastHolding {
            released_by: Some("ada <b>".to_owned()),
            ..LastHolding::from_events(&seen)
        };
        let past = ReleasedLock {
            last: &last,
            holder: Reported::absent("no holder"),
            source: &Source::fixed("lease"),
            looked_at: DateTime::from_timestamp(200, 0).unwrap(),
            newest_token: None,
        };
        let html = facts(&past).into_string();
        assert!(html.contains("released by force by ada &lt;b&gt; at"), "{html}");
        let (_, html) = last_holding_text(&seen, Reported::absent("no holder"));
        assert!(html.contains("released by force at"), "{html}");
    }

    #[test]
    fn an_unknown_holder_is_never_shown_as_free() {
        // A backend that cannot be read, an unobserved end, and a lock that only the fencing
        // rejections name.
        let seen = [
            event(EventKind::Released, 140, "w1", 1),
            event(EventKind::Acquired, 10, "w1", 1),
        ];
        let (_, html) = last_holding_text(&seen, Reported::unknown("the backend is down"));
        assert!(
            !html.contains("no holder") && html.contains("free or held: unknown"),
            "{html}"
        );
        assert!(
            html.contains("the backend is down") && html.contains("released at"),
            "{html}"
        );
        let (sentence, html) = last_holding_text(&seen[1..], Reported::absent("no holder"));
        assert!(sentence.starts_with("since when is not known"), "{sentence}");
        assert!(html.contains("end of the last holding not observed"), "{html}");
        let (sentence, html) = last_holding_text(&[], Reported::absent("no holder"));
        assert_eq!(sentence, "its last holder is older than the retention");
        assert!(html.contains("history does not go back that far"), "{html}");
    }
}
