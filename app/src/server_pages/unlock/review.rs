//! First step: the holding and what would end with it; the only input is a reason.

use domain::force_release::BlastRadius;
use domain::lock::Lock;
use domain::unlock::{Observed, ProtectionReason};
use leptos::prelude::*;

use super::UnlockRefusal;
use super::holder_summary::{HolderSummary, dies, facts, next_up, still_writes};
use super::layout::{UnlockStep, notice, order, page, refused, time};
use super::nodes;
use crate::components::state_badge::Shape;
use crate::links;
use crate::server_pages::field::Area;
use crate::server_pages::layout::Chrome;

#[derive(Debug, Clone)]
pub struct ReviewForm {
    pub lock: Lock,
    /// Why more than a confirmation is needed; `None` without protection.
    pub protection_reason: Option<ProtectionReason>,
    /// `None`: it could not be read now; the last observation is shown.
    pub observed: Option<Observed>,
    /// Why the user cannot unlock it now, and the remedy.
    pub hindrance: Option<(String, Option<String>)>,
    /// The user may not see everything that would be released.
    pub is_forbidden: bool,
    /// The user came from a page that showed another holding.
    pub has_changed: bool,
    pub reason: String,
    pub fault: Option<String>,
    pub refusal: Option<UnlockRefusal>,
}

pub fn review_page(chrome: &Chrome, look: &ReviewForm) -> String {
    let content = view! {
        {refused(look.refusal.as_ref())}
        {changed(look)}
        <div class="grid2">
            {what(look)}
            <div>
                {why(look)}
                {order(vec![
                    ("The intent and your reason go to the audit log; valid for 2 minutes".to_owned(), None),
                    ("You check what is released and type the name".to_owned(), None),
                    ("Exactly this holding is released if it is unchanged; otherwise nothing happens".to_owned(), None),
                    ("The lock is read again and the result goes to the audit log".to_owned(), None),
                ])}
            </div>
        </div>
    };
    page(chrome, &look.lock.id, UnlockStep::Look, content.into_any())
}

fn changed(look: &ReviewForm) -> AnyView {
    if !look.has_changed || look.refusal.is_some() {
        return ().into_any();
    }
    view! {
        <p class="notice warning" role="status">
            <b>"The holder changed. "</b>"The holding differs from the page that you came from. Review it before you continue."
        </p>
    }
    .into_any()
}

fn what(look: &ReviewForm) -> AnyView {
    let id = &look.lock.id;
    let (seen, note, stale) = match &look.observed {
        Some(observed) => (
            HolderSummary::from(observed),
            view! { "read fresh at "{time(observed.read_at)} }.into_any(),
            false,
        ),
        None => (
            HolderSummary::from(&look.lock),
            view! { "as last seen at "{time(look.lock.observed_at)}", not read fresh" }.into_any(),
            true,
        ),
    };
    let rest = look
        .observed
        .as_ref()
        .filter(|_| !look.is_forbidden)
        .map(|observed| {
            let radius: &BlastRadius = &observed.blast_radius;
            view! {
                {nodes::reviewed(observed.quorum.as_ref())}
                {dies(id, radius)}
                {next_up(&observed.waiters, radius, &id.backend)}
                {still_writes(&seen, radius, &id.backend)}
            }
            .into_any()
        });
    view! {
        <section class="panel" class:is-stale=stale aria-labelledby="what-title">
            <header><h2 id="what-title"><span class="n" aria-hidden="true">"1"</span>"Lock to release"</h2><span class="small ink3">{note}</span></header>
            {facts(&seen)}
            {rest}
        </section>
    }
    .into_any()
}

fn why(look: &ReviewForm) -> AnyView {
    let content = match &look.hindrance {
        Some((why, remedy)) => cannot(why, remedy.as_deref()),
        None => form(look),
    };
    view! {
        <section class="panel p2" aria-labelledby="why-title">
            <header><h2 id="why-title"><span class="n" aria-hidden="true">"2"</span>"Unlock request"</h2></header>
            {content}
            <footer class="small"><a class="link" href=links::lock_path(&look.lock.id)>"Back to the lock, release nothing"</a>{others(look)}</footer>
        </section>
    }
    .into_any()
}

/// A failed owner may hold other locks.
fn others(look: &ReviewForm) -> AnyView {
    let backend = ("backend", look.lock.id.backend.as_str());
    let owner = look.lock.owner_id.known().map(|owner| ("owner", owner.as_str()));
    let href = links::with_query(super::bulk::CHOOSE, [backend].into_iter().chain(owner));
    view! { <a class="link ink2" href=href>"Unlock several…"</a> }.into_any()
}

fn cannot(why: &str, remedy: Option<&str>) -> AnyView {
    let remedy = remedy.map(|remedy| view! { <p class="small ink2">{notice(remedy)}</p> });
    view! {
        <div class="go">
            <button class="btn wide" r#type="button" disabled=true aria-describedby="no-unlock"><Shape name="unlock"/>"Continue to confirm"</button>
            <p id="no-unlock"><b>"Not now: "</b>{notice(why)}</p>
            {remedy}
        </div>
    }
    .into_any()
}

fn form(look: &ReviewForm) -> AnyView {
    let reason = Area {
        name: "reason",
        label: "Reason",
        value: look.reason.clone(),
        help: Some(
            "10 to 500 characters. Recorded verbatim, and sent to the holder where the backend supports it.",
        ),
        fault: look.fault.clone(),
    };
    let generation = look.observed.as_ref().map(|seen| seen.generation.to_string());
    let protected = look.protection_reason.as_ref().map(|reason| {
        view! {
            <p class="protection"><b>{notice(&reason.to_string())}" "</b>"You authenticate again and a second approver approves within 2 minutes: have them ready."</p>
        }
    });
    view! {
        <form method="post" action=links::unlock(&links::lock_path(&look.lock.id))>
            <input r#type="hidden" name="generation" value=generation/>
            {reason.view()}
            {protected}
            <div class="do"><button class="btn solid" r#type="submit">"Continue to confirm"</button></div>
            <p class="small ink2">"This step releases nothing."</p>
        </form>
    }
    .into_any()
}
