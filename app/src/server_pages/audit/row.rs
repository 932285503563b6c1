//! One audit entry: actor, reason, changes, and its place in the hash chain.

use domain::escape::visible;
use domain::time_format;
use leptos::prelude::*;

use super::outcome_badge::badge;
use super::pending_reviews::{Review, form};
use super::table::{AuditTableRow, lines};
use crate::components::resource_name::ResourceName;
use crate::links;
use crate::server_pages::layout::{Chrome, Page, page};

#[derive(Debug, Clone)]
pub struct RowPage {
    pub line: AuditTableRow,
    pub actor_id: String,
    pub source: Option<String>,
    pub unlock_id: Option<String>,
    pub ip: Option<String>,
    pub user_agent: Option<String>,
    pub request_id: Option<String>,
    pub trace_id: Option<String>,
    pub hash: String,
    pub prev_hash: String,
    pub gives_its_hash: bool,
    pub follows: bool,
    pub changes: Vec<FieldChange>,
    /// Every step of its unlock, oldest first.
    pub steps: Vec<AuditTableRow>,
    pub older: Option<AuditTableRow>,
    pub newer: Option<AuditTableRow>,
    /// Its break-glass unlock is not reviewed.
    pub review: Option<Review>,
}

/// One field before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    pub field: String,
    pub before: Option<String>,
    pub after: Option<String>,
    pub mark: Mark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Same,
    Changed,
    /// Only one side has the field.
    OneSided,
}

pub fn row(chrome: &Chrome, row: &RowPage) -> String {
    let line = &row.line;
    let title = format!(
        "Audit entry {}: {} by {}",
        line.id,
        line.action,
        visible(&line.actor)
    );
    let review = row.review.map(|review| {
        let act = match review {
            Review::May => form(row.unlock_id.as_deref().unwrap_or_default()),
            Review::Own => view! { <span class="ink2">"Another user must review it."</span> }.into_any(),
            Review::Others => view! { <span class="ink2">"An approver of this lock reviews it."</span> }.into_any(),
        };
        view! { <div class="notice warning"><span>"Break-glass unlock without a second approver, not reviewed yet."</span>{act}</div> }
    });
    let open = (line.outcome == "outcome_unknown").then(|| {
        view! { <p class="notice is-stale">"The backend did not answer: outcome unknown. A later entry records it once the lock is read again."</p> }
    });
    let content = view! {
        <div class="stack audit">
            <div>{review}{open}{facts(row)}</div>
            {reason(row)}
            {changes(row)}
            {steps(row)}
            {tied(row)}
        </div>
    };
    let lead = format!(
        "{}, {}.",
        time_format::dated(line.at),
        super::outcome_badge::word(&line.outcome)
    );
    page(
        chrome,
        Page {
            title,
            lead: Some(lead),
            content: content.into_any(),
        },
    )
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

fn facts(row: &RowPage) -> AnyView {
    let line = &row.line;
    let phase = line
        .phase
        .as_deref()
        .map(|phase| format!("step: {}", visible(phase)));
    let same = line.resource.as_ref().map(|name| {
        let mut pairs = vec![("prefix", name.as_str())];
        pairs.extend(line.backend.as_deref().map(|backend| ("backend", backend)));
        let href = links::with_query("/audit", pairs);
        view! { <ResourceName name=name.clone()/><small><a class="link" href=href>"all entries of this name"</a></small> }
            .into_any()
    });
    let of_actor = links::with_query("/audit", [("actor", row.actor_id.as_str())]);
    let who = view! {
        <bdi>{visible(&line.actor).into_owned()}</bdi>
        <small>{line.role.clone().map(|role| format!("{}, ", visible(&role)))}<a class="link" href=of_actor><bdi>{visible(&row.actor_id).into_owned()}</bdi></a></small>
    };
    let place = line.backend.as_ref().map(|backend| {
        let source = row
            .source
            .clone()
            .map(|source| view! { <small class="mono">{visible(&source).into_owned()}</small> });
        view! { {visible(backend).into_owned()}{source} }.into_any()
    });
    let unlock = row.unlock_id.as_ref().map(|id| {
        let href = links::with_query("/audit", [("unlockId", id.as_str())]);
        view! { <a class="link mono" href=href>{visible(id).into_owned()}</a> }.into_any()
    });
    let with = text(row.user_agent.as_ref()).map(|agent| view! { <small>{agent}</small> });
    let from = mono(row.ip.as_ref()).map(|ip| view! { {ip}{with} }.into_any());
    let is_about_lock = same.is_some() || place.is_some() || unlock.is_some();
    let about_lock = is_about_lock.then(|| {
        view! {
            {fact("second approver", text(line.approver.as_ref()))}
            {fact("resource", same)}
            {fact("backend", place)}
            {fact("unlock", unlock)}
        }
    });
    view! {
        <dl class="facts">
            {fact("outcome", Some(view! { {badge(&line.outcome)}<small>{phase}</small> }.into_any()))}
            {fact("who", Some(who.into_any()))}
            {about_lock}
            {fact("from address", from)}
            {fact("request", mono(row.request_id.as_ref()))}
            {fact("trace", mono(row.trace_id.as_ref()))}
        </dl>
    }
    .into_any()
}

fn reason(row: &RowPage) -> AnyView {
    let Some(reason) = &row.line.reason else {
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

fn changes(row: &RowPage) -> AnyView {
    if row.changes.is_empty() {
        return ().into_any();
    }
    let value = |value: &Option<String>| match value {
        Some(text) => view! { <bdi>{visible(text).into_owned()}</bdi> }.into_any(),
        None => view! { <span class="ink3">"absent"</span> }.into_any(),
    };
    let rows = row.changes.iter().map(|change| {
        let (class, word) = match change.mark {
            Mark::Changed => ("differs", "differs"),
            Mark::Same => ("", "the same"),
            Mark::OneSided => ("", ""),
        };
        view! {
            <tr class=class>
                <th scope="row"><bdi>{visible(&change.field).into_owned()}</bdi></th>
                <td>{value(&change.before)}</td>
                <td>{value(&change.after)}</td>
                <td class="mark">{word}</td>
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

fn steps(row: &RowPage) -> AnyView {
    if row.steps.len() < 2 {
        return ().into_any();
    }
    view! {
        <section class="sec" aria-labelledby="steps">
            <header><h2 id="steps">"Steps of this unlock"</h2><span class="note">"oldest first"</span></header>
            {lines(&row.steps)}
        </section>
    }
    .into_any()
}

fn tied(row: &RowPage) -> AnyView {
    let verdict = match (row.gives_its_hash, row.follows) {
        (true, true) => view! { <p class="notice healthy" role="status">"Hash verified; the entry follows the previous one."</p> }.into_any(),
        (false, _) => view! { <p class="notice critical" role="alert">"Hash mismatch: this entry was changed after it was written."</p> }.into_any(),
        (true, false) => view! { <p class="notice critical" role="alert">"It does not follow the previous entry: an entry was changed, removed or inserted."</p> }.into_any(),
    };
    let neighbours: Vec<AuditTableRow> = row.newer.iter().chain(&row.older).cloned().collect();
    let neighbours = (!neighbours.is_empty()).then(|| lines(&neighbours));
    view! {
        <section class="sec" aria-labelledby="tied">
            <header><h2 id="tied">"Hash chain"</h2></header>
            <div class="tied">
                {verdict}
                <dl class="hashes">
                    <div><dt>"hash"</dt><dd class="mono">{visible(&row.hash).into_owned()}</dd></div>
                    <div><dt>"previous hash"</dt><dd class="mono">{visible(&row.prev_hash).into_owned()}</dd></div>
                </dl>
            </div>
            <h3>"Neighbouring entries"</h3>
            {neighbours}
        </section>
    }
    .into_any()
}

/// Unknown number, or an entry that the user may not read.
pub fn no_row(chrome: &Chrome) -> String {
    let content = view! {
        <section class="empty">
            <p>"There is no such entry, or it is not about your locks."</p>
            <p class="do"><a class="btn" href="/audit">"Newest entries"</a></p>
        </section>
    };
    page(
        chrome,
        Page {
            title: "No such entry".to_owned(),
            lead: None,
            content: content.into_any(),
        },
    )
}

/// The store does not answer.
pub fn unreadable(chrome: &Chrome) -> String {
    let content = view! {
        <section class="empty">
            <p>"The store does not answer. No action runs without its audit entry."</p>
            <p class="do"><a class="btn" href="">"Try again"</a></p>
        </section>
    };
    page(
        chrome,
        Page {
            title: "Audit log unavailable".to_owned(),
            lead: None,
            content: content.into_any(),
        },
    )
}
