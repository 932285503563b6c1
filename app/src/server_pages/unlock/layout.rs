//! Parts shared by every step: header with back link, names, refusal, list of steps.

use chrono::{DateTime, Utc};
use domain::escape::visible;
use domain::force_release::Holding;
use domain::names::LockId;
use domain::reported::Reported;
use domain::time_format;
use leptos::prelude::*;

use super::UnlockRefusal;
use crate::components::fact_list::known_or_why;
use crate::components::state_badge::Shape;
use crate::links;
use crate::server_pages::layout::{Chrome, page_under};

const TITLE_CHARS_MAX: usize = 80;
const SCROLLS_FROM_BYTES: usize = 300;

/// The current step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum UnlockStep {
    Look,
    Confirm,
    Outcome,
}

pub(super) fn page(chrome: &Chrome, id: &LockId, at: UnlockStep, content: AnyView) -> String {
    let name = id.resource.text();
    let shown = visible(&name).into_owned();
    let count = shown.chars().count();
    let end: String = shown
        .chars()
        .skip(count.saturating_sub(TITLE_CHARS_MAX))
        .collect();
    let title = format!("Unlock {end}, {}", id.backend);
    // A name that scrolls must be reachable by keyboard.
    let scrolls = (name.len() > SCROLLS_FROM_BYTES).then_some("0");
    let by_backend = links::with_query("/locks", [("backend", id.backend.as_str())]);
    let head = view! {
        <nav class="crumbs" aria-label="breadcrumb">
            <ol>
                <li><a class="link" href="/locks">"Locks"</a></li>
                <li><a class="link" href=by_backend>{id.backend.to_string()}</a></li>
                <li class="mono"><a class="link" href=links::lock_path(id)><bdi>{shown.clone()}</bdi></a></li>
            </ol>
        </nav>
        <div class="uh">
            <div>
                <p class="small ink3">"Forced unlock"</p>
                <h1 tabindex=scrolls><bdi dir="ltr">{shown}</bdi></h1>
            </div>
            {steps(at)}
        </div>
    };
    page_under(chrome, &title, head.into_any(), content)
}

fn steps(at: UnlockStep) -> AnyView {
    let steps = [
        (UnlockStep::Look, "1", "Review"),
        (UnlockStep::Confirm, "2", "Confirm"),
        (UnlockStep::Outcome, "3", "Result"),
    ];
    let items = steps.map(|(step, number, word)| {
        let current = (step == at).then_some("step");
        let done = (step < at).then(|| view! { <Shape name="ok"/><span class="sr">"done: "</span> });
        view! { <li aria-current=current>{done}<b>{number}</b>" "{word}</li> }
    });
    view! { <ol class="steps small" aria-label="steps">{items.collect_view()}</ol> }.into_any()
}

/// An untrusted name, with hidden characters shown.
pub(super) fn name(text: &str) -> AnyView {
    view! { <bdi>{visible(text).into_owned()}</bdi> }.into_any()
}

/// A sentence of the console or a backend, with hidden characters shown.
pub(super) fn notice(text: &str) -> AnyView {
    let text = visible(text);
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    let mut sentence = first.unwrap_or_default() + chars.as_str();
    if !sentence.ends_with(['.', '?', '!']) && !sentence.is_empty() {
        sentence.push('.');
    }
    view! { <bdi>{sentence}</bdi> }.into_any()
}

pub(super) fn refused(refusal: Option<&UnlockRefusal>) -> AnyView {
    let Some(refusal) = refusal else {
        return ().into_any();
    };
    let remedy = refusal
        .remedy
        .as_deref()
        .map(|remedy| view! { <p>{notice(remedy)}</p> });
    let holders = refusal.holders.as_ref();
    let holders =
        holders.map(|(before, now)| holders_table(before.as_ref(), now.as_ref(), "reviewed", "now"));
    view! {
        <div class="notice critical refusal" role="alert"><p><b>{notice(&refusal.text)}</b></p>{remedy}{holders}</div>
    }
    .into_any()
}

/// Two holdings side by side: owner, token, lease.
pub(super) fn holders_table(
    before: Option<&Holding>,
    now: Option<&Holding>,
    then_word: &'static str,
    now_word: &'static str,
) -> AnyView {
    let owner = |holding: Option<&Holding>| match holding {
        None => view! { "no holder" }.into_any(),
        Some(holding) => known_or_why(&holding.owner_id, |owner| name(owner.as_str())),
    };
    let token = |holding: Option<&Holding>| {
        of_holding(holding, |holding| {
            holding.fencing_token.as_ref().map(ToString::to_string)
        })
    };
    let lease = |holding: Option<&Holding>| of_holding(holding, |holding| holding.lease_id.clone());
    view! {
        <table class="t ba">
            <thead><tr><th scope="col"><span class="sr">"what"</span></th><th scope="col">{then_word}</th><th scope="col">{now_word}</th></tr></thead>
            <tbody>
                <tr><th scope="row">"held by"</th><td>{owner(before)}</td><td><b>{owner(now)}</b></td></tr>
                <tr><th scope="row">"token"</th><td>{token(before)}</td><td><b>{token(now)}</b></td></tr>
                <tr><th scope="row">"lease"</th><td class="mono">{lease(before)}</td><td class="mono">{lease(now)}</td></tr>
            </tbody>
        </table>
    }
    .into_any()
}

fn of_holding(holding: Option<&Holding>, part: impl Fn(&Holding) -> Reported<String>) -> AnyView {
    match holding.map(part) {
        Some(Reported::Value(text)) => name(&text),
        Some(Reported::Unknown(_)) => view! { <span class="ink3">"unknown"</span> }.into_any(),
        Some(Reported::NotApplicable(_)) | None => view! { <span class="ink3">"none"</span> }.into_any(),
    }
}

/// The steps in order, with the times of completed ones.
pub(super) fn order(steps: Vec<(String, Option<DateTime<Utc>>)>) -> AnyView {
    let items = steps.into_iter().map(|(what, at)| {
        let class = at.map(|_| "dn");
        let at = at.map(time);
        view! { <li class=class><span>{what}</span>{at}</li> }
    });
    view! {
        <section class="sec order">
            <header><h2>"Steps"</h2></header>
            <ol>{items.collect_view()}</ol>
        </section>
    }
    .into_any()
}

pub(super) fn time(at: DateTime<Utc>) -> AnyView {
    view! { <time class="small" datetime=time_format::iso(at) title=time_format::dated(at)>{time_format::timed(at)}</time> }
        .into_any()
}

/// A badge: shape, hue and label.
pub(super) fn badge(shape: &'static str, hue: &'static str, word: &'static str) -> AnyView {
    view! { <span class=format!("st {hue}")><Shape name=shape/><b>{word}</b></span> }.into_any()
}

/// A link to the audit entry if the user may read it; otherwise its number.
pub(super) fn record(unlock_id: &str, may_read: bool, row: i64) -> AnyView {
    if may_read {
        let href = links::with_query("/audit", [("unlockId", unlock_id)]);
        return view! { <a class="link" href=href>"Audit entries"</a> }.into_any();
    }
    view! { <span class="ink3">{format!("Audit log from entry {row}")}</span> }.into_any()
}
