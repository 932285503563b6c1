//! What came of it, never dressed up: one panel for each final state, and one for not knowing.

use domain::escape::visible;
use domain::human;
use domain::unlock::{Unlock, UnlockState};
use leptos::prelude::*;

use super::parts::{badge, holders_table, name, record, time, told};
use super::{Step, id_of};
use crate::links;

pub(super) fn panel(step: &Step) -> AnyView {
    let unlock = &step.unlock;
    let (hue, head, note) = head(unlock.state);
    let row = unlock.outcome_row.or(unlock.act_row).unwrap_or(unlock.intent_row);
    view! {
        <section class=format!("panel out {hue}") aria-labelledby="outcome-title">
            <header><h2 id="outcome-title">{head}</h2><span class="small ink3">{note}</span></header>
            {body(unlock)}
            {ways_on(unlock)}
            <footer class="small">
                <a class="link" href=links::of(&id_of(unlock))>"Back to the lock"</a>
                {record(&unlock.id, step.may_read_record, row)}
            </footer>
        </section>
    }
    .into_any()
}

/// Hue, badge and a note on a state.
pub(super) fn head(state: UnlockState) -> (&'static str, AnyView, &'static str) {
    match state {
        UnlockState::Pending => (
            "blind",
            badge("pending", "blind", "Not confirmed"),
            "nothing was released",
        ),
        UnlockState::Released => (
            "healthy",
            badge("ok", "healthy", "Released"),
            "exactly what was looked at",
        ),
        UnlockState::AlreadyFree => (
            "healthy",
            badge("ok", "healthy", "Already free"),
            "nothing was released",
        ),
        UnlockState::HolderChanged => (
            "warning",
            badge("x", "warning", "Holder changed"),
            "nothing was released",
        ),
        UnlockState::Refused => (
            "critical",
            badge("x", "critical", "Refused"),
            "nothing was released",
        ),
        UnlockState::OutcomeUnknown => (
            "blind",
            badge("unknown", "blind", "Outcome unknown"),
            "the record is open",
        ),
        UnlockState::Expired => (
            "blind",
            badge("pending", "blind", "Ran out"),
            "nothing was released",
        ),
        UnlockState::Cancelled => ("blind", badge("x", "blind", "Cancelled"), "nothing was released"),
    }
}

fn body(unlock: &Unlock) -> AnyView {
    let before = unlock.observed.holding();
    let ending = &unlock.ending;
    let why = ending.why.as_deref().map(|why| view! { <p>{told(why)}</p> });
    let mend = ending.mend.as_deref().map(|mend| view! { <p>{told(mend)}</p> });
    let at = unlock.acted_at.map(|at| view! { ", at "{time(at)} });
    match unlock.state {
        UnlockState::Released => {
            let after = ending.is_read.then(|| holders_table(Some(&before), ending.now.as_ref(), "before", "after"));
            let unread = (!ending.is_read).then(|| view! { <p class="ink2">"Who holds it now is not known."</p> });
            view! { <p>"The holding that was looked at has ended"{at}". "<b>{owner(unlock)}" does not hold it any more."</b></p>{why}{unread}{after} }.into_any()
        }
        UnlockState::AlreadyFree => {
            view! { <p>{owner(unlock)}" had let go before it was confirmed. Nobody held it; "<b>"nothing was touched."</b></p>{why} }.into_any()
        }
        UnlockState::HolderChanged => view! {
            <p>{owner(unlock)}" had let go before it was confirmed. Another holding stands there now; "<b>"it was not touched."</b></p>
            {why}
            {holders_table(Some(&before), ending.now.as_ref(), "you looked at", "holds it now")}
        }
        .into_any(),
        UnlockState::Refused => view! { <p><b>"It was not done. "</b></p>{why}{mend} }.into_any(),
        UnlockState::OutcomeUnknown => unknown(unlock),
        UnlockState::Expired => view! { <p>"Nobody confirmed it within its 2 minutes. "<b>"The lock was not touched."</b></p> }.into_any(),
        UnlockState::Cancelled => view! { {why}<p><b>"The lock was not touched."</b></p> }.into_any(),
        UnlockState::Pending => ().into_any(),
    }
}

fn owner(unlock: &Unlock) -> AnyView {
    match unlock.observed.owner_id.known() {
        Some(owner) => name(owner.as_str()),
        None => view! { "Its holder" }.into_any(),
    }
}

fn unknown(unlock: &Unlock) -> AnyView {
    let why = unlock.ending.why.as_deref();
    let why = why.map(|why| view! { <p>{told(why)}</p> });
    let reread = match unlock.rereads {
        0 => "not yet".to_owned(),
        times => format!(
            "{}, and it cannot be told yet",
            human::counted(u64::from(times), "time", "times")
        ),
    };
    let backend = visible(unlock.backend.as_str()).into_owned();
    view! {
        <p>{backend}" did not tell what came of it. The lock "<b>"may or may not be released"</b>". Do not act as if it were."</p>
        {why}
        <dl class="ba">
            <div><dt>"sent"</dt><dd>{unlock.acted_at.map(time)}</dd></div>
            <div><dt>"read again"</dt><dd>{reread}</dd></div>
            <div><dt>"next"</dt><dd>"within 5 s, until it can be told"</dd></div>
        </dl>
        <p class="small ink2">"This page looks by itself every 5 seconds, and turns into the outcome when it is known."</p>
    }
    .into_any()
}

fn ways_on(unlock: &Unlock) -> AnyView {
    let again = links::unlock(&links::of(&id_of(unlock)));
    let word = match unlock.state {
        UnlockState::HolderChanged => "Begin again with the new holder",
        UnlockState::Refused | UnlockState::Expired | UnlockState::Cancelled => "Look again, and begin again",
        UnlockState::Released => {
            let token = unlock.observed.fencing_token.known();
            let with_it = token
                .map(|token| format!(" with token {token}"))
                .unwrap_or_default();
            let words = format!("A holder that does not look may write on: watch for late writes{with_it}.");
            return view! { <p class="small ink2">{words}</p> }.into_any();
        }
        UnlockState::AlreadyFree | UnlockState::OutcomeUnknown | UnlockState::Pending => {
            return ().into_any();
        }
    };
    view! { <p><a class="btn" href=again>{word}</a></p> }.into_any()
}
