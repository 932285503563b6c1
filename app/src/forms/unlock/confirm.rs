//! The second step and what comes of it: what was looked at on one side, what is wanted next, or the outcome, on the other.

use domain::moment;
use domain::unlock::{Unlock, UnlockState};
use leptos::prelude::*;

use super::parts::{At, name, order, page, record, refused, time};
use super::seen::{Seen, dies, facts, next_up, still_writes};
use super::{Step, alone, id_of, outcome, path, wanted};
use crate::forms::chrome::Chrome;
use crate::links;

pub fn step(chrome: &Chrome, step: &Step) -> String {
    let unlock = &step.unlock;
    let is_pending = unlock.state == UnlockState::Pending;
    let at = if is_pending { At::Confirm } else { At::Outcome };
    let panel = if is_pending {
        pending(step)
    } else {
        outcome::panel(step)
    };
    let content = view! {
        {refused(step.refusal.as_ref())}
        {alone::flag(step)}
        <div class="grid2">
            {what(unlock)}
            <div>{panel}{order(events(step))}</div>
        </div>
    };
    page(chrome, &id_of(unlock), at, content.into_any())
}

fn what(unlock: &Unlock) -> AnyView {
    let seen = Seen::from(&unlock.observed);
    let radius = &unlock.observed.blast_radius;
    view! {
        <section class="panel" aria-labelledby="what-title">
            <header>
                <h2 id="what-title"><span class="n" aria-hidden="true">"1"</span>"What was looked at"</h2>
                <span class="small ink3">"read fresh at "{time(unlock.observed.read_at)}", fixed since then"</span>
            </header>
            {facts(&seen)}
            {dies(&id_of(unlock), radius)}
            {next_up(&unlock.observed.waiters, radius, &unlock.backend)}
            {still_writes(&seen, radius, &unlock.backend)}
            <h3>"Reason "<span class="small ink3">"in the record, word for word"</span></h3>
            <p class="said">{name(&unlock.reason)}</p>
            <p class="small ink2">{name(&unlock.by_name)}", "{moment::dated(unlock.created_at)}</p>
        </section>
    }
    .into_any()
}

/// What is wanted next of whoever looks.
fn pending(step: &Step) -> AnyView {
    let unlock = &step.unlock;
    let content = if step.is_owner {
        wanted::of_owner(step)
    } else {
        wanted::of_others(step)
    };
    view! {
        <section class="panel p2" aria-labelledby="confirm-title">
            <header>
                <h2 id="confirm-title"><span class="n" aria-hidden="true">"2"</span>"Confirm"</h2>
                <span class="small ink3">{format!("intent in the record, row {}", unlock.intent_row)}</span>
            </header>
            {validity(step)}
            {content}
            {foot(step)}
        </section>
    }
    .into_any()
}

/// Until when, absolute; the bar runs without a script, by the picture's own clock.
fn validity(step: &Step) -> AnyView {
    let unlock = &step.unlock;
    let left_ms = (unlock.expires_at - step.now).num_milliseconds().max(0);
    let whole_ms = (unlock.expires_at - unlock.created_at).num_milliseconds().max(1);
    let share = domain::human::measure(left_ms as f64 * 100.0 / whole_ms as f64);
    let bar = format!(
        "<rect class=\"track\" y=\"3\" width=\"100%\" height=\"2\"/><rect class=\"rest\" y=\"3\" width=\"{share}%\" height=\"2\">\
         <animate attributeName=\"width\" from=\"{share}%\" to=\"0%\" dur=\"{left_ms}ms\" fill=\"freeze\"/></rect>"
    );
    let left = domain::human::period(left_ms / 1000 * 1000);
    view! {
        <div class="valid">
            <p><span class="small ink3">"valid for 2 minutes, until"</span><b>{time(unlock.expires_at)}</b></p>
            <svg class="cd" aria-hidden="true" inner_html=bar></svg>
            <p class="small ink2">{format!("{left} were left when this page was made. It works once, for ")}{name(&unlock.by_name)}" alone. Nothing has been released yet."</p>
        </div>
    }
    .into_any()
}

fn foot(step: &Step) -> AnyView {
    let id = &step.unlock.id;
    let cancel = step.is_owner.then(|| {
        view! { <form method="post" action=format!("{}/cancel", path(id))><button class="link" r#type="submit">"Cancel, release nothing"</button></form> }
    });
    let to_alone = (step.is_owner && step.is_protected() && !step.is_alone && step.unapproved.is_some())
        .then(|| {
            view! { <a class="link ink2" href=format!("{}?alone", path(id))>"Act alone (break-glass)…"</a> }
        });
    let back = (!step.is_owner).then(|| {
        view! { <a class="link" href=links::of(&id_of(&step.unlock))>"Back to the lock"</a> }
    });
    view! { <footer class="small">{cancel}{back}{to_alone}{record(id, step.may_read_record, step.unlock.intent_row)}</footer> }.into_any()
}

fn events(step: &Step) -> Vec<(String, Option<chrono::DateTime<chrono::Utc>>)> {
    let unlock = &step.unlock;
    let mut events = vec![(
        "The intent is in the record, with the reason".to_owned(),
        Some(unlock.created_at),
    )];
    if let Some(approval) = &unlock.approval {
        let by = domain::escape::visible(&approval.by_name).into_owned();
        events.push((format!("{by} approved it"), Some(approval.at)));
    } else if step.is_protected() && unlock.break_glass.is_none() {
        events.push(("A second person approves".to_owned(), None));
    }
    let what = match unlock.state {
        UnlockState::Expired | UnlockState::Cancelled => {
            events.push((
                "It ended without an act: nothing was released".to_owned(),
                unlock.ended_at,
            ));
            return events;
        }
        _ => {
            "Exactly this holding is ended, if it still is the one that was looked at; if not, nothing happens"
        }
    };
    events.push((what.to_owned(), unlock.acted_at));
    let outcome = unlock.ended_at.filter(|_| !unlock.is_open());
    events.push((
        "The lock is read again, and the outcome is in the record, with before and after".to_owned(),
        outcome,
    ));
    events
}
