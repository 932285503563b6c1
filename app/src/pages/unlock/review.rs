//! First step: the holding and what would be released with it; the only input is a reason.
//!
//! The backend is read when the page opens, when the reader asks for it, and after a refusal:
//! never for an event, because each reading costs the backend.

use chrono::NaiveDate;
use domain::names::LockId;
use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_params_map};

use super::bulk::SELECT;
use super::header::{Phase, document_title, external, head};
use super::holder_summary::{effects, facts};
use super::nodes;
use super::not_found::{choose, nothing};
use super::parts::{notice, order, read_again, time};
use super::refusal::{Refusal, is_refused};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::components::title::PageTitle;
use crate::forms::console_form::{ConsoleForm, FormState};
use crate::forms::field::{SubmitButton, TextArea};
use crate::links;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::pages::unlock::data::{Hindrance, ReviewData, ReviewedLock, unlock_review};
use crate::pages::unlock::refused_stream::RefusedStream;

/// Path of this form in replies. Fixed, because several URLs of the page name the same lock.
pub const REVIEW_FORM: &str = "/unlock";

#[component]
pub fn UnlockReviewPage() -> impl IntoView {
    let (params, location) = (use_params_map(), use_location());
    let (path, search) = (location.pathname, location.search);
    let url_parts = move || {
        let get = |name: &str| params.read().get(name).unwrap_or_default();
        (get("backend"), get("resource"), search.get())
    };
    let names = Memo::new(move |before: Option<&(String, String, String)>| match before {
        // During navigation the page outlives its URL for a moment.
        Some(before) if !path.with(|path| path.starts_with("/unlock/")) => before.clone(),
        _ => url_parts(),
    });
    let load = use_live().refreshing(
        Topics::NONE,
        move || names.get(),
        |(backend, resource, search)| unlock_review(backend, resource, search),
    );
    let read = Callback::new(move |()| load.refetch());
    view! {
        <div class="page">
            <LiveBar/>
            <RefusedStream/>
            <LoadBoundary load shows=Topics::INVENTORY let:data>
                <Body data read/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<ReviewData>, read: Callback<()>) -> impl IntoView {
    let id = Memo::new(move |_| data.with(|data| lock_of(data).map(|lock| lock.id.clone())));
    changing(move || match id.get() {
        Some(_) => data
            .with_untracked(|data| lock_of(data).cloned())
            .map(|first| view! { <Review first data read/> }.into_any())
            .into_any(),
        None => data.with(no_lock),
    })
}

fn lock_of(data: &ReviewData) -> Option<&ReviewedLock> {
    match data {
        ReviewData::Lock(lock) => Some(lock),
        ReviewData::Sources { .. } | ReviewData::Nothing(_) => None,
    }
}

fn no_lock(data: &ReviewData) -> AnyView {
    match data {
        ReviewData::Lock(_) => ().into_any(),
        ReviewData::Sources { name, sources } => choose(name, sources),
        ReviewData::Nothing(found) => nothing("Nothing to unlock", found),
    }
}

#[component]
fn Review(first: ReviewedLock, data: Signal<ReviewData>, read: Callback<()>) -> impl IntoView {
    let state = FormState::of_action(REVIEW_FORM);
    let id = first.id.clone();
    let first_generation = first.generation.clone();
    // The last reading is used while this view is being replaced.
    let lock = Memo::new(move |_| {
        data.with(|data| lock_of(data).cloned())
            .unwrap_or_else(|| first.clone())
    });
    let has_changed = Memo::new(move |_| {
        lock.with(|lock| lock.has_changed || is_other(lock.generation.as_ref(), first_generation.as_ref()))
    });
    // Reads the lock again after a refusal: its holder may have changed.
    Effect::new(move |before: Option<()>| {
        if is_refused(state) && before.is_some() {
            read.run(());
        }
    });
    let changed = move || (has_changed.get() && !is_refused(state)).then(changed);
    view! {
        <PageTitle text=document_title(&id)/>
        {head(&id, Phase::Review)}
        <Refusal state/>
        {changing(changed)}
        <div class="grid2">
            <Holding lock=lock.into() read/>
            <div>
                <Request id lock=lock.into() state/>
                {order(
                    vec![
                        ("The intent and your reason go to the audit log; valid for 2 minutes".to_owned(), None),
                        ("You check what is released and type the name".to_owned(), None),
                        ("Exactly this grant is released if it is unchanged; otherwise nothing happens".to_owned(), None),
                        ("The lock is read again and the result goes to the audit log".to_owned(), None),
                    ],
                    NaiveDate::default(),
                )}
            </div>
        </div>
    }
    .into_any()
}

/// Whether the holder changed. Unknown, and so false, if a reading has no generation because of a hindrance.
fn is_other(now: Option<&String>, first: Option<&String>) -> bool {
    now.is_some() && first.is_some() && now != first
}

fn changed() -> AnyView {
    view! {
        <p class="notice warning" role="status"><span>
            <b>"The holder changed. "</b>"The grant differs from the page that you came from. Review it before you continue."
        </span></p>
    }
    .into_any()
}

#[component]
fn Holding(lock: Signal<ReviewedLock>, read: Callback<()>) -> impl IntoView {
    let is_stale = move || lock.with(|lock| !lock.is_fresh);
    let href = lock.with_untracked(|lock| links::unlock(&links::lock_path(&lock.id)));
    view! {
        <section class="panel" class:is-stale=is_stale aria-labelledby="what-title">
            <header>
                <h2 id="what-title"><span class="n" aria-hidden="true">"1"</span>"Lock to release"</h2>
                <span class="small ink3">{changing(move || lock.with(reading))}" "{read_again(href, "Read again", read)}</span>
            </header>
            {changing(move || lock.with(holding))}
        </section>
    }
    .into_any()
}

fn reading(lock: &ReviewedLock) -> AnyView {
    let at = time(lock.holder.read_at);
    if lock.is_fresh {
        view! { "read from the backend at "{at} }.into_any()
    } else {
        view! { "last observed at "{at}", not read for this page" }.into_any()
    }
}

fn holding(lock: &ReviewedLock) -> AnyView {
    let released = lock.effects.as_ref();
    let released = released.map(|released| effects(&lock.id, &lock.holder, released));
    view! { {facts(&lock.holder)}{nodes::reviewed(lock.quorum.as_ref())}{released} }.into_any()
}

#[component]
fn Request(id: LockId, lock: Signal<ReviewedLock>, state: FormState) -> impl IntoView {
    let hindrance = Memo::new(move |_| lock.with(|lock| lock.hindrance.clone()));
    let back = links::lock_path(&id);
    let rel = external(&id.resource.text());
    let action = links::unlock(&back);
    let has_form = form_shown(hindrance.into(), state.first_reply().is_some());
    let content = move || match has_form.get() {
        true => reason_form(action.clone(), lock, hindrance, state),
        false => hindrance.get().as_ref().map(hindrance_notice).into_any(),
    };
    view! {
        <section class="panel p2" aria-labelledby="why-title">
            <header><h2 id="why-title"><span class="n" aria-hidden="true">"2"</span>"Unlock request"</h2></header>
            {changing(content)}
            <footer class="small">
                <a class="link" href=back rel=rel>"Back to the lock, release nothing"</a>
                <a class="link ink2" href=move || lock.with(other_locks_url)>"Unlock several…"</a>
            </footer>
        </section>
    }
    .into_any()
}

/// Whether the form is shown. Once shown it stays and keeps its input, also if a later reading has a hindrance, which may pass.
fn form_shown(hindrance: Signal<Option<Hindrance>>, has_reply: bool) -> Memo<bool> {
    Memo::new(move |before: Option<&bool>| {
        has_reply || before == Some(&true) || hindrance.with(Option::is_none)
    })
}

/// A failed owner may hold other locks.
fn other_locks_url(lock: &ReviewedLock) -> String {
    let backend = ("backend", lock.id.backend.as_str());
    let owner = lock.owner.as_deref().map(|owner| ("owner", owner));
    links::with_query(SELECT, [backend].into_iter().chain(owner))
}

fn hindrance_notice(hindrance: &Hindrance) -> AnyView {
    let remedy = hindrance.remedy.as_deref();
    let remedy = remedy.map(|remedy| view! { <p class="small ink2">{notice(remedy)}</p> }.into_any());
    view! {
        <div class="go">
            <button class="btn wide" r#type="button" disabled=true aria-describedby="no-unlock"><Shape name="unlock"/>"Continue to confirm"</button>
            <p id="no-unlock"><b>"Cannot be unlocked now: "</b>{notice(&hindrance.why)}</p>
            {remedy}
        </div>
    }
    .into_any()
}

fn reason_form(
    action: String,
    lock: Signal<ReviewedLock>,
    hindrance: Memo<Option<Hindrance>>,
    state: FormState,
) -> AnyView {
    let generation = move || lock.with(|lock| lock.generation.clone());
    let protection = Memo::new(move |_| lock.with(|lock| lock.protection.clone()));
    let protection = move || protection.get().map(|why| protection_note(&why));
    let submit = move || match hindrance.get() {
        Some(hindrance) => hindrance_notice(&hindrance),
        None => view! { <div class="do"><SubmitButton>"Continue to confirm"</SubmitButton></div> }.into_any(),
    };
    view! {
        <ConsoleForm action state>
            <input r#type="hidden" name="generation" value=generation/>
            <TextArea name="reason" label="Reason" help="10 to 500 characters. Recorded verbatim, and sent to the holder where the backend supports it."/>
            {changing(protection)}
            {changing(submit)}
            <p class="small ink2">"This step releases nothing."</p>
        </ConsoleForm>
    }
    .into_any()
}

fn protection_note(why: &str) -> AnyView {
    view! {
        <p class="protection"><b>{notice(why)}" "</b>"You authenticate again and a second approver approves within 2 minutes: have them ready."</p>
    }
    .into_any()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_form_outlives_a_passing_hindrance() {
        let owner = Owner::new();
        owner.set();
        let down = || {
            Some(Hindrance {
                why: "cache is down".to_owned(),
                remedy: None,
            })
        };
        let hindrance = RwSignal::new(down());
        let shown = form_shown(hindrance.into(), false);
        assert!(!shown.get_untracked(), "nothing is typed yet");
        hindrance.set(None);
        assert!(shown.get_untracked());
        hindrance.set(down());
        assert!(shown.get_untracked());
        // After a refusal without a script the page opens with the typed reason.
        assert!(form_shown(hindrance.into(), true).get_untracked());
    }

    #[test]
    fn a_reading_without_a_generation_is_no_other_holder() {
        let [a, b] = ["a", "b"].map(str::to_owned);
        assert!(is_other(Some(&b), Some(&a)));
        assert!(!is_other(Some(&a), Some(&a)));
        assert!(!is_other(None, Some(&a)) && !is_other(Some(&a), None));
    }
}
