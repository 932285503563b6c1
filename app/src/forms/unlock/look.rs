//! The first step: what is held and what would end, before anything is asked for but a reason.

use domain::lock::Lock;
use domain::release::BlastRadius;
use domain::unlock::{Observed, TierReason};
use leptos::prelude::*;

use super::Refusal;
use super::parts::{At, order, page, refused, time, told};
use super::seen::{Seen, dies, facts, next_up, still_writes};
use crate::components::state_badge::Shape;
use crate::forms::chrome::Chrome;
use crate::forms::field::Area;
use crate::links;

#[derive(Debug, Clone)]
pub struct Look {
    pub lock: Lock,
    /// Why more than a confirmation is needed; none where nothing is protected.
    pub tier_reason: Option<TierReason>,
    /// None: it could not be read just now, and what was last seen is shown.
    pub observed: Option<Observed>,
    /// Why whoever looks cannot unlock it now, and what to do about it.
    pub hindrance: Option<(String, Option<String>)>,
    /// What dies with it is not theirs to see.
    pub is_forbidden: bool,
    /// Whoever came here had another holding on the screen.
    pub has_changed: bool,
    pub reason: String,
    pub fault: Option<String>,
    pub refusal: Option<Refusal>,
}

pub fn look(chrome: &Chrome, look: &Look) -> String {
    let content = view! {
        {refused(look.refusal.as_ref())}
        {changed(look)}
        <div class="grid2">
            {what(look)}
            <div>
                {why(look)}
                {order(vec![
                    ("The intent goes into the record, with your reason, and is good for 2 minutes".to_owned(), None),
                    ("You see once more what dies, and type the name".to_owned(), None),
                    ("Exactly this holding is ended, if it still is the one you saw; if not, nothing happens".to_owned(), None),
                    ("The lock is read again, and the outcome goes into the record".to_owned(), None),
                ])}
            </div>
        </div>
    };
    page(chrome, &look.lock.id, At::Look, content.into_any())
}

fn changed(look: &Look) -> AnyView {
    if !look.has_changed || look.refusal.is_some() {
        return ().into_any();
    }
    view! {
        <p class="notice warning" role="status">
            <b>"The holder changed. "</b>"Another holding stands here than on the page that you come from. Look again before you go on."
        </p>
    }
    .into_any()
}

fn what(look: &Look) -> AnyView {
    let id = &look.lock.id;
    let (seen, note, stale) = match &look.observed {
        Some(observed) => (
            Seen::from(observed),
            view! { "read fresh at "{time(observed.read_at)} }.into_any(),
            false,
        ),
        None => (
            Seen::from(&look.lock),
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
                {dies(id, radius)}
                {next_up(&observed.waiters, radius, &id.backend)}
                {still_writes(&seen, radius, &id.backend)}
            }
            .into_any()
        });
    view! {
        <section class="panel" class:is-stale=stale aria-labelledby="what-title">
            <header><h2 id="what-title"><span class="n" aria-hidden="true">"1"</span>"What you are looking at"</h2><span class="small ink3">{note}</span></header>
            {facts(&seen)}
            {rest}
        </section>
    }
    .into_any()
}

fn why(look: &Look) -> AnyView {
    let content = match &look.hindrance {
        Some((why, mend)) => cannot(why, mend.as_deref()),
        None => form(look),
    };
    view! {
        <section class="panel p2" aria-labelledby="why-title">
            <header><h2 id="why-title"><span class="n" aria-hidden="true">"2"</span>"Why it must go"</h2></header>
            {content}
            <footer class="small"><a class="link" href=links::of(&look.lock.id)>"Back to the lock, release nothing"</a>{others(look)}</footer>
        </section>
    }
    .into_any()
}

/// Whoever died holding this one may hold others.
fn others(look: &Look) -> AnyView {
    let backend = ("backend", look.lock.id.backend.as_str());
    let owner = look.lock.owner_id.known().map(|owner| ("owner", owner.as_str()));
    let href = links::with_query(super::several::CHOOSE, [backend].into_iter().chain(owner));
    view! { <a class="link ink2" href=href>"Several of this holder's…"</a> }.into_any()
}

fn cannot(why: &str, mend: Option<&str>) -> AnyView {
    let mend = mend.map(|mend| view! { <p class="small ink2">{told(mend)}</p> });
    view! {
        <div class="go">
            <button class="btn wide" r#type="button" disabled=true aria-describedby="no-unlock"><Shape name="unlock"/>"Go on to confirm"</button>
            <p id="no-unlock"><b>"Not now: "</b>{told(why)}</p>
            {mend}
        </div>
    }
    .into_any()
}

fn form(look: &Look) -> AnyView {
    let reason = Area {
        name: "reason",
        label: "Reason",
        value: look.reason.clone(),
        help: Some(
            "At least 10 characters, at most 500. It goes into the record word for word, and to the holder where the backend can tell it.",
        ),
        fault: look.fault.clone(),
    };
    let generation = look.observed.as_ref().map(|seen| seen.generation.to_string());
    let protected = look.tier_reason.as_ref().map(|reason| {
        view! {
            <p class="tier"><b>{told(&reason.to_string())}" "</b>"You prove again who you are, and a second person approves, within the 2 minutes: have them at hand."</p>
        }
    });
    view! {
        <form method="post" action=links::unlock(&links::of(&look.lock.id))>
            <input r#type="hidden" name="generation" value=generation/>
            {reason.view()}
            {protected}
            <div class="do"><button class="btn solid" r#type="submit">"Go on to confirm"</button></div>
            <p class="small ink2">"Nothing is released by this step."</p>
        </form>
    }
    .into_any()
}
