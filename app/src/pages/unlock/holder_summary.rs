//! Summary of the holding: owner, hold time, what ends with it, next owner, possible late
//! writes.

use domain::force_release::CasualtyKind;
use domain::names::{BackendName, LockId};
use domain::observation::Waiter;
use domain::reported::Reported;
use leptos::prelude::*;

use super::parts::{name, notice, time_on};
use crate::charts::svg::percent;
use crate::components::fact_list::{Facts, known_or_why};
use crate::components::state_badge::Shape;
use crate::format;
use crate::pages::unlock::data::{CasualtyRow, HolderData, ReleaseEffects};

/// Rows shown at once; the rest is in a disclosure.
const CASUALTIES_SHOWN: usize = 30;
const WAITERS_SHOWN: usize = 10;

/// The four facts and the expiry bar.
pub(super) fn facts(seen: &HolderData) -> AnyView {
    let cells = vec![
        ("held by", owner(seen)),
        ("held for", held_since(seen)),
        ("renewing", renewing(seen)),
        (
            "fencing token",
            known_or_why(&seen.fencing_token, |token| token.to_string().into_any()),
        ),
    ];
    view! { <Facts cells/>{time_left(seen)} }.into_any()
}

fn owner(seen: &HolderData) -> AnyView {
    let others = seen.owner_count.saturating_sub(1);
    let others = (others > 0).then(|| format!("and {} more share it", format::count(u64::from(others))));
    let others = others.map(|others| view! { <small>{others}</small> }.into_any());
    let lease = seen
        .lease_id
        .known()
        .map(|lease| view! { <small class="mono">"lease "{name(lease)}</small> }.into_any());
    view! { {known_or_why(&seen.owner_id, |owner| name(owner.as_str()))}{others}{lease} }.into_any()
}

fn held_since(seen: &HolderData) -> AnyView {
    let since = seen
        .acquired_at
        .known()
        .map(|at| view! { <small>"since "{time_on(*at, seen.read_at.date_naive())}</small> }.into_any());
    let length = match seen.held_at_least_ms {
        Some(ms) if !seen.held_ms.is_known() => format!("at least {}", format::duration(ms)).into_any(),
        _ => known_or_why(&seen.held_ms, |ms| format::duration(*ms).into_any()),
    };
    view! { {length}{since} }.into_any()
}

fn renewing(seen: &HolderData) -> AnyView {
    known_or_why(&seen.renewal, |renewal| {
        let last = format::age(renewal.last_ago_ms);
        if seen.is_silent {
            return view! { <span class="st critical"><Shape name="not_renewing"/>"stopped"</span><small>{format!("last {last} before this reading")}</small> }
                .into_any();
        }
        let interval = format!("every {}", format::duration(renewal.interval_ms));
        view! { {interval}<small>{format!("last {last} before this reading")}</small> }.into_any()
    })
}

/// Time left at the reading; it does not count down.
fn time_left(seen: &HolderData) -> AnyView {
    let (Reported::Value(left), Reported::Value(ttl)) = (&seen.remaining_ms, &seen.ttl_ms) else {
        let text = match &seen.remaining_ms {
            Reported::Value(left) => format!("{} left; its TTL is unknown", domain::format::duration(*left)),
            Reported::NotApplicable(why) => format!("no expiry: {why}"),
            Reported::Unknown(why) => format!("time left unknown: {why}"),
        };
        return view! { <p class="small ink2 rwl">{notice(&text)}</p> }.into_any();
    };
    let share = (*left).clamp(0, (*ttl).max(1)) as f64 * 100.0 / (*ttl).max(1) as f64;
    let hue = match *left {
        ..=0 => "critical",
        left if left.saturating_mul(3) < *ttl => "warning",
        _ => "healthy",
    };
    let text = format::duration(*left);
    let title = format!("{text} left of {} at the reading", format::period(*ttl));
    view! {
        <div class=format!("rwl rw {hue}")>
            <svg role="img"><title>{title}</title>
                <rect class="track" y="5" width="100%" height="6"></rect>
                <rect class="left" y="5" width=percent(share) height="6"></rect>
            </svg>
            <b>{text}</b>
        </div>
    }
    .into_any()
}

/// Everything that ends with it, the lock itself first.
pub(super) fn also_released(id: &LockId, effects: &ReleaseEffects) -> AnyView {
    let own_row = view! {
        <tr><td class="res">{name(&id.resource.text())}</td><td class="ink2">"this lock"</td><td>{ends_badge()}</td></tr>
    };
    let all = &effects.casualties;
    let (first, rest) = all.split_at(all.len().min(CASUALTIES_SHOWN));
    let first = first.iter().map(casualty).collect_view();
    let nothing = all
        .is_empty()
        .then(|| view! { <p class="small ink2 pad">"Only this lock."</p> }.into_any());
    let more = (!rest.is_empty()).then(|| {
        let text = format!("and {} more", format::count(rest.len() as u64));
        view! {
            <details class="more"><summary class="link small">{text}</summary>
                <table class="t kill"><thead class="sr">{kill_head()}</thead><tbody>{rest.iter().map(casualty).collect_view()}</tbody></table>
            </details>
        }
        .into_any()
    });
    view! {
        <h3>"Also released"</h3>
        <table class="t kill"><thead>{kill_head()}</thead><tbody>{own_row}{first}</tbody></table>
        {more}
        {nothing}
    }
    .into_any()
}

fn kill_head() -> AnyView {
    view! { <tr><th scope="col">"what"</th><th scope="col">"kind"</th><th scope="col">"with the unlock"</th></tr> }.into_any()
}

fn casualty(casualty: &CasualtyRow) -> AnyView {
    view! { <tr><td class="res">{name(&casualty.what)}</td><td class="ink2">{casualty.kind.as_str()}</td><td>{ends_badge()}</td></tr> }.into_any()
}

fn ends_badge() -> AnyView {
    view! { <span class="st critical small"><Shape name="x"/>"ends"</span> }.into_any()
}

pub(super) fn next_up(effects: &ReleaseEffects, backend: &BackendName) -> AnyView {
    let waiters: &[Waiter] = &effects.waiters;
    let order = match (&effects.next, waiters.len()) {
        (Some(next), _) => view! { <p class="small ink2 pad">"If it is released now, "{name(next.as_str())}" gets it."</p> }.into_any(),
        (None, 0) => view! { <p class="small ink2 pad">{format!("{backend} reports no waiters.")}</p> }.into_any(),
        (None, _) => view! { <p class="small ink2 pad">{format!("{backend} has no queue order: any waiter may be next.")}</p> }.into_any(),
    };
    let rows = waiters.iter().take(WAITERS_SHOWN).map(|waiter| {
        let waits = match &waiter.waited_ms {
            Reported::Value(ms) => view! { <span class="waiting st">{format!("waits {}", format::duration(*ms))}</span> }.into_any(),
            Reported::Unknown(_) | Reported::NotApplicable(_) => view! { <span class="ink3">"waiting, start unknown"</span> }.into_any(),
        };
        let lease = waiter.lease_remaining_ms.map(|ms| format!("its own lease has {} left", format::duration(ms)));
        view! { <li><span class="ink3">{waiter.position}</span><b>{name(waiter.owner_id.as_str())}</b>{waits}<span class="ink2 small">{lease}</span></li> }.into_any()
    });
    let rows = (!waiters.is_empty()).then(|| {
        let rows = rows.collect_view();
        view! { <ol class="nextup">{rows}</ol> }.into_any()
    });
    let more = waiters.len().saturating_sub(WAITERS_SHOWN);
    let more = (more > 0).then(|| {
        view! { <p class="small ink2">{format!("and {} more", format::count(more as u64))}</p> }.into_any()
    });
    view! { <h3>"Next in the queue"</h3>{rows}{more}{order} }.into_any()
}

/// Warns that the holder may still write: no lock stops a holder that does not check it.
fn late_write_warning(seen: &HolderData, effects: &ReleaseEffects, backend: &BackendName) -> AnyView {
    let question = match &seen.owner_id {
        Reported::Value(owner) => view! { "Can "{name(owner.as_str())}" still write?" }.into_any(),
        Reported::Unknown(_) | Reported::NotApplicable(_) => {
            view! { "Can its holder still write?" }.into_any()
        }
    };
    let has_casualty = |kind| effects.casualties.iter().any(|casualty| casualty.kind == kind);
    let first = if *backend == BackendName::builtin() {
        "It is notified within a second and may write until it stops. "
    } else if has_casualty(CasualtyKind::Transaction) && !has_casualty(CasualtyKind::Session) {
        "Not in this transaction: it is rolled back. In a new one it may. "
    } else if has_casualty(CasualtyKind::Session) {
        "Not in this session: it ends and uncommitted work is rolled back. In a new one it may. "
    } else {
        ""
    };
    // Sentences of the backend.
    let warnings = effects
        .warnings
        .iter()
        .map(|warning| view! { {name(warning)}" " }.into_any());
    let warnings = warnings.collect_view();
    let token = seen.fencing_token.known().map(|token| {
        format!("Resources that check the token reject {token} once the next holder has written.")
    });
    view! { <p class="hurt"><b>{question}</b>" "{first}{warnings}{token}</p> }.into_any()
}

/// Everything that a release would do.
pub(super) fn effects(id: &LockId, seen: &HolderData, effects: &ReleaseEffects) -> AnyView {
    view! {
        {also_released(id, effects)}
        {next_up(effects, &id.backend)}
        {late_write_warning(seen, effects, &id.backend)}
    }
    .into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_hold_time_that_is_unknown_has_its_reason() {
        // A fresh reading of a grant that no scan has observed.
        let why = "it was acquired after the last scan";
        let mut seen = HolderData {
            owner_id: Reported::unknown("it is not reported"),
            owner_count: 1,
            lease_id: Reported::unknown("it is not reported"),
            fencing_token: Reported::absent("this kind has no token"),
            acquired_at: Reported::unknown("it is not reported"),
            held_ms: Reported::unknown(why),
            held_at_least_ms: None,
            ttl_ms: Reported::Value(30_000),
            remaining_ms: Reported::Value(10_000),
            renewal: Reported::unknown(why),
            is_silent: false,
            read_at: chrono::DateTime::UNIX_EPOCH,
        };
        let shown = |seen: &HolderData| {
            let seen = seen.clone();
            crate::charts::tests::html(move || held_since(&seen))
        };
        let html = shown(&seen);
        assert!(html.contains("unknown") && html.contains(why), "{html}");
        seen.held_at_least_ms = Some(61_000);
        assert!(
            shown(&seen).contains("at least 1\u{a0}m\u{a0}01\u{a0}s"),
            "{}",
            shown(&seen)
        );
        seen.held_ms = Reported::Value(62_000);
        assert!(
            shown(&seen).contains("1\u{a0}m\u{a0}02\u{a0}s"),
            "{}",
            shown(&seen)
        );
    }
}
