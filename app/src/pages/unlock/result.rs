//! Result of a forced unlock: one panel per final state, and one for an unknown outcome.

use chrono::NaiveDate;
use domain::escape::visible;
use domain::force_release::NodeResult;
use domain::unlock::UnlockState;
use leptos::prelude::*;

use super::header::external;
use super::nodes;
use super::parts::{audit_entries, badge, holdings, name, paragraph, read_again, time_on};
use super::path;
use crate::focus::focus_if_lost;
use crate::format;
use crate::links;
use crate::pages::unlock::data::UnlockData;

/// Id of the heading that changes with the result, on every page of a forced unlock.
pub(super) const TITLE_ID: &str = "outcome-title";

/// Focuses the heading if the form that led to the result took the focus with it.
pub(super) fn focus_title() {
    if let Some(title) = document().get_element_by_id(TITLE_ID) {
        focus_if_lost(&title);
    }
}

/// `read` reads the unlock again.
pub(super) fn panel(
    unlock: &UnlockData,
    may_read_audit: bool,
    today: NaiveDate,
    read: Callback<()>,
) -> AnyView {
    let (hue, head, mut note) = head(unlock.state);
    let mut nodes = unlock.ending.nodes.iter();
    if unlock.state == UnlockState::Refused && nodes.any(|node| node.result == NodeResult::Deleted) {
        note = "deleted on some nodes only";
    }
    let rel = external(&unlock.lock.resource.text());
    view! {
        <section class=format!("panel out {hue}") aria-labelledby=TITLE_ID>
            <header><h2 id=TITLE_ID>{head}</h2><span class="small ink3">{note}</span></header>
            {body(unlock, today, read)}
            {nodes::results(&unlock.ending.nodes)}
            {next_steps(unlock)}
            <footer class="small">
                <a class="link" href=links::lock_path(&unlock.lock) rel=rel>"Back to the lock"</a>
                {audit_entries(&unlock.id, may_read_audit, unlock.last_entry)}
            </footer>
        </section>
    }
    .into_any()
}

/// Hue, badge and remark of a state.
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
            "exactly the reviewed grant",
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
            // Not "nothing": copies on a minority of the nodes of a Redlock may be deleted.
            "the lock was not released",
        ),
        UnlockState::OutcomeUnknown => (
            "blind",
            badge("unknown", "blind", "Outcome unknown"),
            "not final yet",
        ),
        UnlockState::Expired => (
            "blind",
            badge("pending", "blind", "Expired"),
            "nothing was released",
        ),
        UnlockState::Cancelled => ("blind", badge("x", "blind", "Cancelled"), "nothing was released"),
    }
}

fn body(unlock: &UnlockData, today: NaiveDate, read: Callback<()>) -> AnyView {
    let before = &unlock.holding;
    let ending = &unlock.ending;
    let now = ending.now.as_ref();
    let (why, remedy) = (
        paragraph(ending.why.as_deref()),
        paragraph(ending.remedy.as_deref()),
    );
    let at = unlock
        .acted_at
        .map(|at| view! { ", at "{time_on(at, today)} }.into_any());
    match unlock.state {
        UnlockState::Released => {
            let after = ending.is_read.then(|| holdings(["before", "after"], before, now));
            let unread = (!ending.is_read).then(|| view! { <p class="ink2">"The current holder is unknown."</p> }.into_any());
            view! { <p>"The reviewed grant has ended"{at}". "<b>{owner(unlock)}" does not hold it any more."</b></p>{why}{unread}{after} }.into_any()
        }
        UnlockState::AlreadyFree => {
            view! { <p>{owner(unlock)}" did not hold it any more at the confirmation. The lock was free; "<b>"nothing was touched."</b></p>{why} }.into_any()
        }
        UnlockState::HolderChanged => view! {
            <p>{owner(unlock)}" did not hold it any more at the confirmation. Another holder has it now; "<b>"it was not touched."</b></p>
            {why}
            {holdings(["reviewed", "now"], before, now)}
        }
        .into_any(),
        UnlockState::Refused => view! { <p><b>"It was not released. "</b></p>{why}{remedy} }.into_any(),
        UnlockState::OutcomeUnknown => unknown(unlock, today, read),
        UnlockState::Expired => view! { <p>"Not confirmed within 2 minutes. "<b>"The lock was not touched."</b></p> }.into_any(),
        UnlockState::Cancelled => view! { {why}<p><b>"The lock was not touched."</b></p> }.into_any(),
        UnlockState::Pending => ().into_any(),
    }
}

fn owner(unlock: &UnlockData) -> AnyView {
    match unlock.holder.owner_id.known() {
        Some(owner) => name(owner.as_str()),
        None => view! { "Its holder" }.into_any(),
    }
}

fn unknown(unlock: &UnlockData, today: NaiveDate, read: Callback<()>) -> AnyView {
    let ending = &unlock.ending;
    let (why, remedy) = (
        paragraph(ending.why.as_deref()),
        paragraph(ending.remedy.as_deref()),
    );
    let reread = match unlock.rereads {
        0 => "not yet".to_owned(),
        times => format!(
            "{}, still unknown",
            format::counted(u64::from(times), "time", "times")
        ),
    };
    let backend = visible(unlock.lock.backend.as_str()).into_owned();
    let sent = unlock.acted_at.map(|at| time_on(at, today));
    view! {
        <p>{backend}" did not report the result. The lock "<b>"may or may not be released"</b>". Do not assume that it is."</p>
        {why}
        {remedy}
        <dl class="ba">
            <div><dt>"sent"</dt><dd>{sent}</dd></div>
            <div><dt>"read again"</dt><dd>{reread}</dd></div>
            <div><dt>"next"</dt><dd>"within 5\u{a0}s, until it is known"</dd></div>
        </dl>
        <p class="small ink2">"The result appears here when it is known; "{read_again(path(&unlock.id), "check now", read)}"."</p>
    }
    .into_any()
}

fn next_steps(unlock: &UnlockData) -> AnyView {
    let again = links::unlock(&links::lock_path(&unlock.lock));
    let rel = external(&unlock.lock.resource.text());
    let label = match unlock.state {
        UnlockState::HolderChanged => "Restart with the new holder",
        UnlockState::Refused | UnlockState::Expired | UnlockState::Cancelled => "Review again",
        UnlockState::Released => {
            let token = unlock.holder.fencing_token.known();
            let with_it = token
                .map(|token| format!(" with token {token}"))
                .unwrap_or_default();
            let warning =
                format!("A holder that does not check may still write: watch for late writes{with_it}.");
            return view! { <p class="small ink2">{warning}</p> }.into_any();
        }
        UnlockState::AlreadyFree | UnlockState::OutcomeUnknown | UnlockState::Pending => {
            return ().into_any();
        }
    };
    view! { <p><a class="btn" href=again rel=rel>{label}</a></p> }.into_any()
}
