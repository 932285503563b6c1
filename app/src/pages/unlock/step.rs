//! Second step and result: the reviewed lock on one side, the next requirement or the result on
//! the other. Both follow the audit log: the approval and the resolved outcome appear by
//! themselves.

use chrono::NaiveDate;
use domain::escape::visible;
use domain::time_format;
use domain::unlock::UnlockState;
use leptos::prelude::*;
use leptos_router::hooks::{use_location, use_params_map};

use super::break_glass::Flag;
use super::header::{Phase, document_title, external, head};
use super::holder_summary::{effects, facts};
use super::not_found::nothing;
use super::parts::{StepTime, audit_entries, name, order, time_on};
use super::refusal::Refusal;
use super::requirements::{ApprovalState, Requirement, RequirementOf};
use super::validity::Validity;
use super::{BREAK_GLASS, break_glass_path, path, result};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormState};
use crate::forms::field::SubmitButton;
use crate::links;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::pages::unlock::data::{StepData, UnlockData, UnlockStep, unlock};

const TOPICS: Topics = Topics::ACTIVITY;

#[component]
pub fn UnlockStepPage() -> impl IntoView {
    let params = use_params_map();
    // During navigation the page outlives its URL for a moment.
    let id = Memo::new(move |before: Option<&String>| {
        let id = params.read().get("unlock_id");
        id.or_else(|| before.cloned()).unwrap_or_default()
    });
    let load = use_live().refreshing(TOPICS, move || id.get(), unlock);
    let read = Callback::new(move |()| load.refetch());
    view! {
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data read/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<StepData>, read: Callback<()>) -> impl IntoView {
    let id = Memo::new(move |_| data.with(|data| step_of(data).map(|step| step.unlock.id.clone())));
    changing(move || match id.get() {
        Some(_) => data
            .with_untracked(|data| step_of(data).cloned())
            .map(|first| view! { <Step first data read/> }.into_any())
            .into_any(),
        None => data.with(no_unlock),
    })
}

fn step_of(data: &StepData) -> Option<&UnlockStep> {
    match data {
        StepData::Unlock(step) => Some(step),
        StepData::Nothing(_) => None,
    }
}

fn no_unlock(data: &StepData) -> AnyView {
    match data {
        StepData::Unlock(_) => ().into_any(),
        StepData::Nothing(found) => nothing("No unlock has this id", found),
    }
}

/// States of the forms of one unlock.
#[derive(Clone, Copy)]
pub(super) struct StepForms {
    pub(super) confirm: FormState,
    pub(super) approve: FormState,
    pub(super) prove: FormState,
    cancel: FormState,
    review: FormState,
}

impl StepForms {
    fn new(id: &str) -> Self {
        let form_of = |act: &str| FormState::of_action(&format!("{}/{act}", path(id)));
        Self {
            confirm: form_of("confirm"),
            approve: form_of("approve"),
            prove: form_of("prove"),
            cancel: form_of("cancel"),
            review: form_of("review"),
        }
    }

    /// Removes messages of lost requests after the unlock has changed. The effect of a lost confirmation or cancellation is known
    /// only after the state has changed, so their messages stay until then.
    fn clear_failures(self, is_other_state: bool) {
        for form in [self.approve, self.prove, self.review] {
            form.clear_failure();
        }
        if is_other_state {
            self.confirm.clear_failure();
            self.cancel.clear_failure();
        }
    }

    fn refusals(self) -> AnyView {
        let all = [self.confirm, self.approve, self.prove, self.cancel, self.review];
        let all = all.map(|state| view! { <Refusal state/> }.into_any());
        all.into_iter().collect_view().into_any()
    }
}

#[component]
fn Step(first: UnlockStep, data: Signal<StepData>, read: Callback<()>) -> impl IntoView {
    let forms = StepForms::new(&first.unlock.id);
    let lock = first.unlock.lock.clone();
    let reviewed = reviewed_lock(&first.unlock, first.now.date_naive());
    let of = RequirementOf::new(&first, forms, read);
    // The last data is used while this view is being replaced.
    let step = Memo::new(move |_| {
        data.with(|data| step_of(data).cloned())
            .unwrap_or_else(|| first.clone())
    });
    let is_pending = Memo::new(move |_| step.with(|step| step.unlock.state == UnlockState::Pending));
    // Any of these changes replaces a panel, a form or the flag.
    Effect::new(move |before: Option<(UnlockState, Requirement, bool)>| {
        let now = step.with(|step| (step.unlock.state, Requirement::next(step, false), step.may_review));
        if let Some(before) = before.filter(|before| *before != now) {
            forms.clear_failures(before.0 != now.0);
            request_animation_frame(result::focus_title);
        }
        now
    });
    let title = document_title(&lock);
    let header = move || match is_pending.get() {
        true => head(&lock, Phase::Confirm),
        false => head(&lock, Phase::Result),
    };
    let panel = move || match is_pending.get() {
        true => view! { <Confirm step=step.into() of=of.clone()/> }.into_any(),
        false => view! { <Outcome step=step.into() read/> }.into_any(),
    };
    let events = Memo::new(move |_| step.with(|step| (events(step), step.now.date_naive())));
    let order = move || {
        let (events, today) = events.get();
        order(events, today)
    };
    view! {
        <PageTitle text=title/>
        {changing(header)}
        {forms.refusals()}
        <Flag step=step.into() state=forms.review/>
        <div class="grid2">
            {reviewed}
            <div>{changing(panel)}{changing(order)}</div>
        </div>
    }
    .into_any()
}

/// As read for the intent: it never changes.
fn reviewed_lock(unlock: &UnlockData, today: NaiveDate) -> AnyView {
    view! {
        <section class="panel" aria-labelledby="what-title">
            <header>
                <h2 id="what-title"><span class="n" aria-hidden="true">"1"</span>"Reviewed lock"</h2>
                <span class="small ink3">"read from the backend at "{time_on(unlock.holder.read_at, today)}", not refreshed since"</span>
            </header>
            {facts(&unlock.holder)}
            {effects(&unlock.lock, &unlock.holder, &unlock.effects)}
            <h3>"Reason "<span class="small ink3">"recorded verbatim"</span></h3>
            <p class="said">{name(&unlock.reason)}</p>
            <p class="small ink2">{name(&unlock.by_name)}", "{format::unbroken(&time_format::dated(unlock.created_at)).into_owned()}</p>
        </section>
    }
    .into_any()
}

#[component]
fn Outcome(step: Signal<UnlockStep>, read: Callback<()>) -> impl IntoView {
    // Only the day of each response's clock, so that the panel is created again only when the unlock or the day changes.
    let shown = Memo::new(move |_| {
        step.with(|step| (step.unlock.clone(), step.may_read_audit, step.now.date_naive()))
    });
    changing(move || {
        shown.with(|(unlock, may_read_audit, today)| result::panel(unlock, *may_read_audit, *today, read))
    })
}

/// Next requirement for the user.
#[component]
fn Confirm(step: Signal<UnlockStep>, of: RequirementOf) -> impl IntoView {
    let search = use_location().search;
    let is_break_glass = Memo::new(move |_| {
        search.with(|search| links::pairs(search).iter().any(|(key, _)| key == BREAK_GLASS))
    });
    let requirement = Memo::new(move |_| step.with(|step| Requirement::next(step, is_break_glass.get())));
    let read = of.read;
    let cancel = of.forms.cancel;
    let intent = step.with_untracked(|step| step.unlock.intent_entry);
    let links = Memo::new(move |_| step.with(|step| FooterLinks::new(step, is_break_glass.get())));
    view! {
        <section class="panel p2" aria-labelledby=result::TITLE_ID>
            <header>
                <h2 id=result::TITLE_ID><span class="n" aria-hidden="true">"2"</span>"Confirm"</h2>
                <span class="small ink3">{format!("intent: audit entry {intent}")}</span>
            </header>
            <Validity step read/>
            <ApprovalState step/>
            {changing(move || requirement.get().view(&of))}
            {changing(move || step.with_untracked(|step| links.get().view(step, cancel)))}
        </section>
    }
    .into_any()
}

/// What the footer offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FooterLinks {
    is_owner: bool,
    has_break_glass: bool,
    may_read_audit: bool,
}

impl FooterLinks {
    fn new(step: &UnlockStep, is_break_glass: bool) -> Self {
        Self {
            is_owner: step.is_owner,
            has_break_glass: step.is_owner
                && step.protection.is_some()
                && step.unapproved.is_some()
                && !is_break_glass,
            may_read_audit: step.may_read_audit,
        }
    }

    fn view(self, step: &UnlockStep, cancel: FormState) -> AnyView {
        let unlock = &step.unlock;
        let first = if self.is_owner {
            view! {
                <ConsoleForm action=format!("{}/cancel", path(&unlock.id)) stays=true state=cancel>
                    <SubmitButton class="link">"Cancel, release nothing"</SubmitButton>
                </ConsoleForm>
            }
            .into_any()
        } else {
            let rel = external(&unlock.lock.resource.text());
            view! { <a class="link" href=links::lock_path(&unlock.lock) rel=rel>"Back to the lock"</a> }
                .into_any()
        };
        let break_glass = self.has_break_glass.then(|| {
            view! { <a class="link ink2" href=break_glass_path(&unlock.id)>"Break-glass…"</a> }.into_any()
        });
        let entries = audit_entries(&unlock.id, self.may_read_audit, unlock.intent_entry);
        view! { <footer class="small">{first}{break_glass}{entries}</footer> }.into_any()
    }
}

fn events(step: &UnlockStep) -> Vec<StepTime> {
    let unlock = &step.unlock;
    let mut events = vec![(
        "Intent and reason in the audit log".to_owned(),
        Some(unlock.created_at),
    )];
    if let Some(approval) = &unlock.approval {
        let by = visible(&approval.by_name);
        events.push((format!("{by} approved it"), Some(approval.at)));
    } else if step.protection.is_some() && unlock.break_glass.is_none() {
        events.push(("A second approver approves".to_owned(), None));
    }
    // An unlock may end without a release: the lock was free, had another holder, or the release would have ended more than
    // was shown.
    let is_unreleased = unlock.acted_at.is_none() && unlock.ended_at.is_some();
    if is_unreleased || matches!(unlock.state, UnlockState::Expired | UnlockState::Cancelled) {
        events.push(("Ended without a release".to_owned(), unlock.ended_at));
        return events;
    }
    let release = "Exactly this grant is released if it is unchanged; otherwise nothing happens";
    events.push((release.to_owned(), unlock.acted_at));
    let is_open = unlock.state == UnlockState::OutcomeUnknown;
    events.push((
        "The lock is read again; result, before and after in the audit log".to_owned(),
        unlock.ended_at.filter(|_| !is_open),
    ));
    events
}
