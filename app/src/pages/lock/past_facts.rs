//! Facts of a lock without a known holder: its last holding, above its history.

use chrono::{DateTime, Utc};
use domain::escape::visible;
use domain::lock_detail::{EventKind, LastHolding, LockDetail, PastLock};
use domain::reported::Reported;
use domain::time_format;
use leptos::prelude::*;

use crate::components::reactive::changing;
use crate::format;

/// The row of facts.
#[component]
pub fn PastFacts(#[prop(into)] detail: Signal<LockDetail>) -> impl IntoView {
    let cells = move || detail.with(|detail| detail.past.as_ref().map(|past| cells(detail, past)));
    view! { <dl class="facts">{changing(cells)}</dl> }.into_any()
}

/// The facts. The holder is "no holder" only if a fresh reading found the lock free; without one it is unknown.
fn cells(detail: &LockDetail, past: &PastLock) -> Vec<AnyView> {
    // As of the last reading.
    let read_at = detail.lock.observed_at;
    let holder = detail.fresh.clone().map(|_| ());
    vec![
        cell("held by", held_by(&holder)),
        cell("free since", free_since(&past.last, &holder, read_at)),
        cell("last held by", last_held_by(&past.last)),
        cell("held for", held_for(&past.last)),
        cell("last fencing token", token(past)),
        cell("as of", time(read_at)),
        cell("source", detail.lock.id.source.as_str().to_owned().into_any()),
    ]
}

fn cell(label: &'static str, value: AnyView) -> AnyView {
    view! { <div><dt>{label}</dt><dd>{value}</dd></div> }.into_any()
}

fn missing(label: &'static str, why: String) -> AnyView {
    view! { <span class="none">{label}</span><small>{why}</small> }.into_any()
}

fn time(at: DateTime<Utc>) -> AnyView {
    view! { <time datetime=time_format::iso(at)>{time_format::dated(at)}</time> }.into_any()
}

fn held_by(holder: &Reported<()>) -> AnyView {
    match holder {
        Reported::Unknown(why) => missing("unknown", format::prose(why)),
        Reported::Value(()) | Reported::NotApplicable(_) => "no holder".into_any(),
    }
}

fn free_since(last: &LastHolding, holder: &Reported<()>, read_at: DateTime<Utc>) -> AnyView {
    match (last.end, holder) {
        (_, Reported::Unknown(_)) => missing("unknown", "free or held: unknown".to_owned()),
        (Some((_, at)), _) => {
            let ms = (read_at - at).num_milliseconds().max(0);
            view! { {time(at)}<small>{format!("for {} at the last reading", format::age(ms))}</small> }
                .into_any()
        }
        (None, _) => missing("unknown", "end of the last hold not observed".to_owned()),
    }
}

fn last_held_by(last: &LastHolding) -> AnyView {
    let Some(owner) = &last.owner else {
        let why = if last.seen_at.is_some() {
            "not reported by the backend"
        } else {
            "history does not go back that far"
        };
        return missing("unknown", why.to_owned());
    };
    let end_text = match last.end {
        Some((EventKind::Expired, at)) => format!("its lease had expired by {}", time_format::dated(at)),
        Some((EventKind::Revoked, at)) => match &last.released_by {
            Some(by) => format!(
                "released by force by {} at {}",
                visible(by),
                time_format::dated(at)
            ),
            None => format!("released by force at {}", time_format::dated(at)),
        },
        Some((_, at)) => format!("released at {}", time_format::dated(at)),
        None => "end not observed".to_owned(),
    };
    view! { <bdi class="long">{visible(owner.as_str()).into_owned()}</bdi><small>{format::unbroken(&end_text).into_owned()}</small> }
        .into_any()
}

fn held_for(last: &LastHolding) -> AnyView {
    match last.began.zip(last.end) {
        Some((began, (_, ended))) => {
            let length = format::age((ended - began).num_milliseconds().max(0));
            view! { {length}<small>"from "{time(began)}</small> }.into_any()
        }
        None => missing("unknown", "start or end unknown".to_owned()),
    }
}

fn token(past: &PastLock) -> AnyView {
    match past.newest_token.max(past.last.token) {
        Some(token) => {
            view! { {token.to_string()}<small>"the next grant has a higher one"</small> }.into_any()
        }
        None => missing("unknown", "none reported".to_owned()),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use domain::backend::BackendStatus;
    use domain::lock_detail::SeenEvent;
    use domain::names::OwnerId;
    use domain::token::FencingToken;

    use super::*;
    use crate::charts::tests::html;
    use crate::pages::locks::row_buffer::tests::lock;

    fn event(kind: EventKind, at_s: i64, owner: &str, token: u64) -> SeenEvent {
        SeenEvent {
            kind,
            at: DateTime::from_timestamp(at_s, 0).unwrap_or_default(),
            owner_id: Some(OwnerId::new(owner)),
            fencing_token: Some(FencingToken::new(token)),
            waited_ms: None,
            trace_id: None,
            not_before: None,
        }
    }

    fn facts(last: LastHolding, fresh: Reported<()>) -> String {
        let mut lock = lock("a", "w1");
        lock.observed_at = DateTime::from_timestamp(200, 0).unwrap_or_default();
        let fresh = match fresh {
            Reported::Unknown(why) => Reported::Unknown(why),
            Reported::NotApplicable(why) => Reported::NotApplicable(why),
            Reported::Value(()) => unreachable!("a past lock has no fresh holder"),
        };
        let past = PastLock {
            last,
            newest_token: None,
        };
        let detail = LockDetail {
            lock,
            backend_status: BackendStatus::Live,
            backend_fault: None,
            no_unlock: None,
            fresh,
            seen: Vec::new(),
            past: Some(past),
            charts: None,
        };
        html(move || view! { <PastFacts detail=Signal::stored(detail.clone())/> }.into_any())
    }

    #[test]
    fn the_last_holding_is_shown_and_names_are_escaped() {
        // The last owner has a hostile name.
        let bad = "\u{202e}<script>";
        let seen = [
            event(EventKind::Expired, 140, bad, 2),
            event(EventKind::Acquired, 80, bad, 2),
        ];
        let html = facts(LastHolding::from_events(&seen), Reported::absent("free"));
        assert!(
            html.contains("no holder") && html.contains("for 1\u{a0}m\u{a0}00\u{a0}s at the last reading"),
            "{html}"
        );
        assert!(
            html.contains("its lease had expired by") && html.contains(">1\u{a0}m\u{a0}00\u{a0}s<small>from"),
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
        let html = facts(last, Reported::absent("free"));
        assert!(html.contains("released by force by ada &lt;b&gt; at"), "{html}");
        let html = facts(LastHolding::from_events(&seen), Reported::absent("free"));
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
        let html = facts(
            LastHolding::from_events(&seen),
            Reported::unknown("the backend is down"),
        );
        assert!(
            !html.contains("no holder") && html.contains("free or held: unknown"),
            "{html}"
        );
        assert!(
            html.contains("the backend is down") && html.contains("released at"),
            "{html}"
        );
        let html = facts(LastHolding::from_events(&seen[1..]), Reported::absent("free"));
        assert!(html.contains("end of the last hold not observed"), "{html}");
        let html = facts(LastHolding::default(), Reported::absent("free"));
        assert!(html.contains("history does not go back that far"), "{html}");
    }
}
