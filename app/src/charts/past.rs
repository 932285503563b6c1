//! A lock that nobody holds, on its own page: the row of facts about its last holding, above what history tells of it.

use chrono::{DateTime, Utc};
use domain::detail::{EventKind, SeenEvent};
use domain::known::Known;
use domain::names::{OwnerId, Source};
use domain::token::FencingToken;
use domain::{human, moment};

use super::markup::Markup;

/// What is known of the last holding.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Last {
    pub owner: Option<OwnerId>,
    pub token: Option<FencingToken>,
    /// How and when it ended; none: its end was not seen.
    pub end: Option<(EventKind, DateTime<Utc>)>,
    /// Who released it by force, where that is recorded.
    pub released_by: Option<String>,
    /// When it was seen to begin.
    pub began: Option<DateTime<Utc>>,
    /// When it was seen last.
    pub seen_at: Option<DateTime<Utc>>,
}

/// What the page tells.
pub struct Past<'a> {
    pub last: &'a Last,
    /// `Absent`: nobody holds it. `Unknown`: that cannot be told, and why.
    pub holder: Known<()>,
    pub source: &'a Source,
    /// When it was looked whether anybody holds it.
    pub looked_at: DateTime<Utc>,
    /// The newest token ever granted, where the backend keeps count.
    pub newest_token: Option<FencingToken>,
}

impl Last {
    /// From what was seen of the lock, newest first.
    pub fn of(seen: &[SeenEvent]) -> Self {
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

    /// For one line: since when it is free, and who had it.
    pub fn sentence(&self) -> String {
        let owner = self
            .owner
            .as_ref()
            .map_or_else(|| "an owner that was not told".to_owned(), ToString::to_string);
        match (self.end, self.seen_at) {
            (Some((_, at)), _) => format!("free since {}, last held by {owner}", moment::dated(at)),
            (None, Some(at)) => format!(
                "since when is not known; {owner} was granted it at {} and the end of that was not seen",
                moment::dated(at)
            ),
            (None, None) => "who held it last is not kept any more".to_owned(),
        }
    }
}

/// The row of facts.
pub fn facts(past: &Past<'_>) -> Markup {
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
        it.said("dt", &[], label);
        it.wrap("dd", &[], value);
    });
}

fn missing(it: &mut Markup, word: &str, why: &str) {
    it.said("span", &[("class", "none")], word);
    it.said("small", &[], why);
}

fn time(it: &mut Markup, at: DateTime<Utc>) {
    it.said("time", &[("datetime", &moment::iso(at))], &moment::dated(at));
}

fn held_by(it: &mut Markup, past: &Past<'_>) {
    match &past.holder {
        Known::Unknown(why) => missing(it, "unknown", &domain::escape::visible(why)),
        Known::Known(()) | Known::Absent(_) => {
            it.text("nobody");
        }
    }
}

fn free_since(it: &mut Markup, past: &Past<'_>) {
    match (past.last.end, &past.holder) {
        (_, Known::Unknown(_)) => missing(it, "unknown", "whether it is free cannot be told now"),
        (Some((_, at)), _) => {
            time(it, at);
            let ms = (past.looked_at - at).num_milliseconds().max(0);
            it.said("small", &[], &format!("for {} by then", human::age(ms)));
        }
        (None, _) => missing(it, "unknown", "the end of the last holding was not seen"),
    }
}

fn last_held_by(it: &mut Markup, last: &Last) {
    let Some(owner) = &last.owner else {
        let why = if last.seen_at.is_some() {
            "the backend did not tell"
        } else {
            "history does not go back that far"
        };
        return missing(it, "unknown", why);
    };
    it.wrap("bdi", &[("class", "long")], |it| {
        it.text(&domain::escape::visible(owner.as_str()));
    });
    let how = match last.end {
        Some((EventKind::Expired, at)) => format!("its lease had run out by {}", moment::dated(at)),
        Some((EventKind::Revoked, at)) => match &last.released_by {
            Some(by) => format!(
                "released by force by {} at {}",
                domain::escape::visible(by),
                moment::dated(at)
            ),
            None => format!("released by force at {}", moment::dated(at)),
        },
        Some((_, at)) => format!("released at {}", moment::dated(at)),
        None => "its end was not seen".to_owned(),
    };
    it.said("small", &[], &how);
}

fn held_for(it: &mut Markup, last: &Last) {
    match last.began.zip(last.end) {
        Some((began, (_, ended))) => {
            it.text(&human::age((ended - began).num_milliseconds().max(0)));
            it.said("small", &[], &format!("from {}", moment::dated(began)));
        }
        None => missing(it, "unknown", "not both ends of it are known"),
    }
}

fn token(it: &mut Markup, past: &Past<'_>) {
    match past.newest_token.max(past.last.token) {
        Some(token) => {
            it.text(&token.to_string());
            it.said("small", &[], "the next grant has a higher one");
        }
        None => missing(it, "unknown", "none was told"),
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

    fn told(seen: &[SeenEvent], holder: Known<()>) -> (String, String) {
        let last = Last::of(seen);
        let past = Past {
            last: &last,
            holder,
            source: &Source::fixed("lease"),
            looked_at: DateTime::from_timestamp(200, 0).unwrap(),
            newest_token: None,
        };
        (last.sentence(), facts(&past).into_string())
    }

    #[test]
    fn the_last_holding_is_told_and_nothing_of_a_name_is_html() {
        // Two holdings, then a write that was refused; the last owner has a hostile name.
        let bad = "\u{202e}<script>";
        let seen = [
            event(EventKind::Rejected, 150, "w1", 1),
            event(EventKind::Expired, 140, bad, 2),
            event(EventKind::Acquired, 80, bad, 2),
            event(EventKind::Released, 70, "w1", 1),
            event(EventKind::Acquired, 10, "w1", 1),
        ];
        let (sentence, html) = told(&seen, Known::absent("nobody"));
        assert!(
            sentence.starts_with("free since 1970-01-01 00:02:20"),
            "{sentence}"
        );
        assert!(
            html.contains("nobody") && html.contains("for 1 m 00 s by then"),
            "{html}"
        );
        assert!(
            html.contains("its lease had run out") && html.contains(">1 m 00 s<small>from"),
            "{html}"
        );
        assert!(!html.contains("<script") && !html.contains('\u{202e}'), "{html}");
    }

    #[test]
    fn a_forced_release_names_who_did_it() {
        let seen = [
            event(EventKind::Revoked, 140, "w1", 1),
            event(EventKind::Acquired, 10, "w1", 1),
        ];
        let last = Last {
            released_by: Some("ada <b>".to_owned()),
            ..Last::of(&seen)
        };
        let past = Past {
            last: &last,
            holder: Known::absent("nobody"),
            source: &Source::fixed("lease"),
            looked_at: DateTime::from_timestamp(200, 0).unwrap(),
            newest_token: None,
        };
        let html = facts(&past).into_string();
        assert!(html.contains("released by force by ada &lt;b&gt; at"), "{html}");
        let (_, html) = told(&seen, Known::absent("nobody"));
        assert!(html.contains("released by force at"), "{html}");
    }

    #[test]
    fn what_is_not_known_is_never_told_as_free() {
        // A backend that cannot be read, an end that nobody saw, and a lock of which only the ledger knows.
        let seen = [
            event(EventKind::Released, 140, "w1", 1),
            event(EventKind::Acquired, 10, "w1", 1),
        ];
        let (_, html) = told(&seen, Known::unknown("the backend is down"));
        assert!(
            !html.contains("nobody") && html.contains("whether it is free cannot be told"),
            "{html}"
        );
        assert!(
            html.contains("the backend is down") && html.contains("released at"),
            "{html}"
        );
        let (sentence, html) = told(&seen[1..], Known::absent("nobody"));
        assert!(sentence.starts_with("since when is not known"), "{sentence}");
        assert!(
            html.contains("the end of the last holding was not seen"),
            "{html}"
        );
        let (sentence, html) = told(&[], Known::absent("nobody"));
        assert_eq!(sentence, "who held it last is not kept any more");
        assert!(html.contains("history does not go back that far"), "{html}");
    }
}
