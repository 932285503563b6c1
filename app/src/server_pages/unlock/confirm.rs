//! Second step and result: the reviewed lock on one side, the next requirement or the result on
//! the other.

use domain::time_format;
use domain::unlock::{Unlock, UnlockState};
use leptos::prelude::*;

use super::holder_summary::{HolderSummary, dies, facts, next_up, still_writes};
use super::layout::{UnlockStep, name, order, page, record, refused, time};
use super::{Step, break_glass, id_of, path, requirements, result};
use crate::links;
use crate::server_pages::layout::Chrome;

pub fn step(chrome: &Chrome, step: &Step) -> String {
    let unlock = &step.unlock;
    let is_pending = unlock.state == UnlockState::Pending;
    let at = if is_pending {
        UnlockStep::Confirm
    } else {
        UnlockStep::Outcome
    };
    let panel = if is_pending {
        pending(step)
    } else {
        result::panel(step)
    };
    let content = view! {
        {refused(step.refusal.as_ref())}
        {break_glass::flag(step)}
        <div class="grid2">
            {what(unlock)}
            <div>{panel}{order(events(step))}</div>
        </div>
    };
    page(chrome, &id_of(unlock), at, content.into_any())
}

fn what(unlock: &Unlock) -> AnyView {
    let seen = HolderSummary::from(&unlock.observed);
    let radius = &unlock.observed.blast_radius;
    view! {
        <section class="panel" aria-labelledby="what-title">
            <header>
                <h2 id="what-title"><span class="n" aria-hidden="true">"1"</span>"Reviewed lock"</h2>
                <span class="small ink3">"read fresh at "{time(unlock.observed.read_at)}", not refreshed since"</span>
            </header>
            {facts(&seen)}
            {dies(&id_of(unlock), radius)}
            {next_up(&unlock.observed.waiters, radius, &unlock.backend)}
            {still_writes(&seen, radius, &unlock.backend)}
            <h3>"Reason "<span class="small ink3">"recorded verbatim"</span></h3>
            <p class="said">{name(&unlock.reason)}</p>
            <p class="small ink2">{name(&unlock.by_name)}", "{time_format::dated(unlock.created_at)}</p>
        </section>
    }
    .into_any()
}

/// Next requirement for the user.
fn pending(step: &Step) -> AnyView {
    let unlock = &step.unlock;
    let content = if step.is_owner {
        requirements::of_owner(step)
    } else {
        requirements::of_others(step)
    };
    view! {
        <section class="panel p2" aria-labelledby="confirm-title">
            <header>
                <h2 id="confirm-title"><span class="n" aria-hidden="true">"2"</span>"Confirm"</h2>
                <span class="small ink3">{format!("intent: audit entry {}", unlock.intent_entry)}</span>
            </header>
            {validity(step)}
            {content}
            {foot(step)}
        </section>
    }
    .into_any()
}

/// Absolute end of validity; the bar runs on the SVG's clock, without script.
fn validity(step: &Step) -> AnyView {
    let unlock = &step.unlock;
    let left_ms = (unlock.expires_at - step.now).num_milliseconds().max(0);
    let whole_ms = (unlock.expires_at - unlock.created_at).num_milliseconds().max(1);
    let share = domain::format::measure(left_ms as f64 * 100.0 / whole_ms as f64);
    let bar = format!(
        "<rect class=\"track\" y=\"3\" width=\"100%\" height=\"2\"/><rect class=\"rest\" y=\"3\" width=\"{share}%\" height=\"2\">\
         <animate attributeName=\"width\" from=\"{share}%\" to=\"0%\" dur=\"{left_ms}ms\" fill=\"freeze\"/></rect>"
    );
    let left = domain::format::period(left_ms / 1000 * 1000);
    view! {
        <div class="valid">
            <p><span class="small ink3">"valid for 2 minutes, until"</span><b>{time(unlock.expires_at)}</b></p>
            <svg class="cd" aria-hidden="true" inner_html=bar></svg>
            <p class="small ink2">{format!("{left} left when this page was loaded. Valid once, for ")}{name(&unlock.by_name)}" only. Nothing has been released yet."</p>
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
            view! { <a class="link ink2" href=format!("{}?alone", path(id))>"Break-glass…"</a> }
        });
    let back = (!step.is_owner).then(|| {
        view! { <a class="link" href=links::lock_path(&id_of(&step.unlock))>"Back to the lock"</a> }
    });
    view! { <footer class="small">{cancel}{back}{to_alone}{record(id, step.may_read_record, step.unlock.intent_entry)}</footer> }.into_any()
}

fn events(step: &Step) -> Vec<(String, Option<chrono::DateTime<chrono::Utc>>)> {
    let unlock = &step.unlock;
    let mut events = vec![(
        "Intent and reason in the audit log".to_owned(),
        Some(unlock.created_at),
    )];
    if let Some(approval) = &unlock.approval {
        let by = domain::escape::visible(&approval.by_name).into_owned();
        events.push((format!("{by} approved it"), Some(approval.at)));
    } else if step.is_protected() && unlock.break_glass.is_none() {
        events.push(("A second approver approves".to_owned(), None));
    }
    let what = match unlock.state {
        UnlockState::Expired | UnlockState::Cancelled => {
            events.push(("Ended without a release".to_owned(), unlock.ended_at));
            return events;
        }
        _ => "Exactly this holding is released if it is unchanged; otherwise nothing happens",
    };
    events.push((what.to_owned(), unlock.acted_at));
    let outcome = unlock.ended_at.filter(|_| !unlock.is_open());
    events.push((
        "The lock is read again; result, before and after in the audit log".to_owned(),
        outcome,
    ));
    events
}
