//! One audit entry: actor, reason, changes, and its place in the hash chain.

use domain::escape::visible;
use domain::time_format;
use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use super::outcome_badge::{badge, outcome_label};
use super::pending_reviews::{form, review_action};
use super::table::table;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::resource_name::ResourceName;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::FormState;
use crate::links;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::pages::audit::data::{
    AuditEntryData, AuditTableRow, ChangeMark, FieldChange, ReviewRight, audit_entry,
};

const TOPICS: Topics = Topics::ACTIVITY;

#[component]
pub fn AuditEntryPage() -> impl IntoView {
    let params = use_params_map();
    // During navigation the page outlives its URL for a moment.
    let id = Memo::new(move |before: Option<&String>| {
        let id = params.read().get("id");
        id.or_else(|| before.cloned()).unwrap_or_default()
    });
    let load = use_live().refreshing(TOPICS, move || id.get(), audit_entry);
    view! {
        <PageTitle text=move || format!("Audit entry {}", id.get())/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<AuditEntryData>) -> impl IntoView {
    view! { {changing(move || data.with(entry))} }.into_any()
}

fn entry(data: &AuditEntryData) -> AnyView {
    let row = &data.row;
    let title = format!(
        "Audit entry {}: {} by {}",
        row.id,
        row.action,
        visible(&row.actor)
    );
    let review = data.review.map(|review| {
        let act = match review {
            ReviewRight::May => {
                let id = data.unlock_id.as_deref().unwrap_or_default();
                form(id, FormState::of_action(&review_action(id)))
            }
            ReviewRight::Own => view! { <span class="ink2">"Another user must review it."</span> }.into_any(),
            ReviewRight::Others => view! { <span class="ink2">"Only an approver of this lock may review it."</span> }.into_any(),
        };
        view! { <div class="notice warning"><span>"Break-glass unlock without a second approver, not reviewed yet."</span>{act}</div> }.into_any()
    });
    let open = (row.outcome == "outcome_unknown").then(|| {
        view! { <p class="notice is-stale">"The backend did not answer: outcome unknown. A later entry records the outcome once it is known."</p> }.into_any()
    });
    let lead = format!("{}, {}.", time_format::dated(row.at), outcome_label(&row.outcome));
    view! {
        <div class="pagehead"><h1>{title}</h1><p>{format::unbroken(&lead).into_owned()}</p></div>
        <div class="stack audit">
            <div>{review}{open}{facts(data)}</div>
            {reason(row)}
            {changes(&data.changes)}
            {steps(&data.steps)}
            {hash_chain(data)}
        </div>
    }
    .into_any()
}

fn fact(label: &'static str, value: Option<AnyView>) -> AnyView {
    let value = value.unwrap_or_else(|| view! { <span class="none">"none"</span> }.into_any());
    view! { <div><dt>{label}</dt><dd>{value}</dd></div> }.into_any()
}

fn text(value: Option<&String>) -> Option<AnyView> {
    value.map(|text| view! { <bdi>{visible(text).into_owned()}</bdi> }.into_any())
}

fn mono(value: Option<&String>) -> Option<AnyView> {
    value.map(|text| view! { <bdi class="mono">{visible(text).into_owned()}</bdi> }.into_any())
}

fn facts(data: &AuditEntryData) -> AnyView {
    let row = &data.row;
    let phase = row
        .phase
        .as_deref()
        .map(|phase| format!("step: {}", visible(phase)));
    let resource = row.resource.as_ref().map(|name| {
        let mut pairs = vec![("prefix", links::filter_value(name))];
        pairs.extend(row.backend.as_deref().map(|backend| ("backend", backend)));
        let href = links::with_query("/audit", pairs);
        view! { <ResourceName name=name.clone()/><small><a class="link" href=href>"all entries of this name"</a></small> }
            .into_any()
    });
    let of_actor = links::with_query("/audit", [("actor", data.actor_id.as_str())]);
    let actor = view! {
        <bdi>{visible(&row.actor).into_owned()}</bdi>
        <small>{row.role.clone().map(|role| format!("{}, ", visible(&role)))}<a class="link" href=of_actor><bdi>{visible(&data.actor_id).into_owned()}</bdi></a></small>
    };
    let place = row.backend.as_ref().map(|backend| {
        let source = data
            .source
            .clone()
            .map(|source| view! { <small class="mono">{visible(&source).into_owned()}</small> });
        view! { {visible(backend).into_owned()}{source} }.into_any()
    });
    let unlock = data.unlock_id.as_ref().map(|id| {
        let href = links::with_query("/audit", [("unlockId", id.as_str())]);
        view! { <a class="link mono" href=href>{visible(id).into_owned()}</a> }.into_any()
    });
    let with = text(data.user_agent.as_ref()).map(|agent| view! { <small>{agent}</small> });
    let from = mono(data.ip.as_ref()).map(|ip| view! { {ip}{with} }.into_any());
    let is_about_lock = resource.is_some() || place.is_some() || unlock.is_some();
    let about_lock = is_about_lock.then(|| {
        view! {
            {fact("second approver", text(row.approver.as_ref()))}
            {fact("resource", resource)}
            {fact("backend", place)}
            {fact("unlock", unlock)}
        }
    });
    view! {
        <dl class="facts">
            {fact("outcome", Some(view! { {badge(&row.outcome)}<small>{phase}</small> }.into_any()))}
            {fact("who", Some(actor.into_any()))}
            {about_lock}
            {fact("from address", from)}
            {fact("request", mono(data.request_id.as_ref()))}
            {fact("trace", mono(data.trace_id.as_ref()))}
        </dl>
    }
    .into_any()
}

fn reason(row: &AuditTableRow) -> AnyView {
    let Some(reason) = &row.reason else {
        return ().into_any();
    };
    view! {
        <section class="sec" aria-labelledby="reason">
            <header><h2 id="reason">"Reason"</h2></header>
            <p class="said"><bdi>{visible(reason).into_owned()}</bdi></p>
        </section>
    }
    .into_any()
}

fn changes(changes: &[FieldChange]) -> AnyView {
    if changes.is_empty() {
        return ().into_any();
    }
    let value = |value: &Option<String>| match value {
        Some(text) => view! { <bdi>{visible(text).into_owned()}</bdi> }.into_any(),
        None => view! { <span class="ink3">"absent"</span> }.into_any(),
    };
    let rows = changes.iter().map(|change| {
        let (class, label) = match change.mark {
            ChangeMark::Changed => ("differs", "differs"),
            ChangeMark::Same => ("", "the same"),
            ChangeMark::OneSided => ("", ""),
        };
        view! {
            <tr class=class>
                <th scope="row"><bdi>{visible(&change.field).into_owned()}</bdi></th>
                <td>{value(&change.before)}</td>
                <td>{value(&change.after)}</td>
                <td class="mark">{label}</td>
            </tr>
        }
    });
    view! {
        <section class="sec" aria-labelledby="changes">
            <header><h2 id="changes">"Before and after"</h2><span class="note">"null: unknown or none"</span></header>
            <table class="t diff">
                <thead><tr><th scope="col">"field"</th><th scope="col">"before"</th><th scope="col">"after"</th>
                    <th scope="col"><span class="sr">"compared"</span></th></tr></thead>
                <tbody>{rows.collect_view()}</tbody>
            </table>
        </section>
    }
    .into_any()
}

fn steps(steps: &[AuditTableRow]) -> AnyView {
    if steps.len() < 2 {
        return ().into_any();
    }
    view! {
        <section class="sec" aria-labelledby="steps">
            <header><h2 id="steps">"Steps of this unlock"</h2><span class="note">"oldest first"</span></header>
            {table(steps)}
        </section>
    }
    .into_any()
}

fn hash_chain(data: &AuditEntryData) -> AnyView {
    let verdict = match (data.is_hash_valid, data.follows_previous) {
        (true, true) => view! { <p class="notice healthy" role="status">"Hash verified; the entry follows the previous one."</p> }.into_any(),
        (false, _) => view! { <p class="notice critical" role="alert">"Hash mismatch: this entry was changed after it was written."</p> }.into_any(),
        (true, false) => view! { <p class="notice critical" role="alert">"This entry does not follow the previous one: an entry was changed, removed or inserted."</p> }.into_any(),
    };
    let neighbours: Vec<AuditTableRow> = data.newer.iter().chain(&data.older).cloned().collect();
    let neighbours = (!neighbours.is_empty()).then(|| table(&neighbours));
    view! {
        <section class="sec" aria-labelledby="tied">
            <header><h2 id="tied">"Hash chain"</h2></header>
            <div class="tied">
                {verdict}
                <dl class="hashes">
                    <div><dt>"hash"</dt><dd class="mono">{visible(&data.hash).into_owned()}</dd></div>
                    <div><dt>"previous hash"</dt><dd class="mono">{visible(&data.prev_hash).into_owned()}</dd></div>
                </dl>
            </div>
            <h3>"Neighbouring entries"</h3>
            {neighbours}
        </section>
    }
    .into_any()
}
