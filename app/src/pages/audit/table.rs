//! Table of audit entries. Steps of one forced unlock are grouped and joined by a rail; each
//! keeps its own number and time.

use chrono::{DateTime, Utc};
use domain::escape::visible;
use domain::time_format;
use leptos::prelude::*;

use super::outcome_badge::badge;
use crate::components::reactive::{changing, keyed};
use crate::components::resource_name::ResourceName;
use crate::pages::audit::data::{AuditTableRow, EntryFlag, Join};

impl Join {
    const fn class(self) -> &'static str {
        match self {
            Self::Alone => "",
            Self::First => "joined first",
            Self::Middle => "joined",
            Self::Last => "joined last",
        }
    }
}

/// Limit within a row; the entry's page has the full text.
const REASON_CHARS_MAX: usize = 160;

fn short(text: &str) -> String {
    let cut: String = text.chars().take(REASON_CHARS_MAX).collect();
    let is_cut = cut.len() < text.len();
    visible(&cut).into_owned() + if is_cut { "…" } else { "" }
}

/// `2026-03-01 03:12:41`; the column heading names UTC.
fn time_cell(at: DateTime<Utc>) -> AnyView {
    let dated = time_format::dated(at);
    let text = dated.trim_end_matches(" UTC").to_owned();
    let (day, time) = text.split_once(' ').unwrap_or(("", &text));
    view! { <time datetime=time_format::iso(at) title=dated.clone()><span class="ink3">{day.to_owned()}" "</span>{time.to_owned()}</time> }
        .into_any()
}

pub(super) fn table(entries: &[AuditTableRow]) -> AnyView {
    let rows = entries
        .iter()
        .map(|row| view! { <tr class=row_class(row)>{cells(row)}</tr> }.into_any());
    frame(rows.collect_view().into_any())
}

/// A table whose entries are refetched. Each row keeps its elements when newer entries move it down, so that the focus stays on
/// its entry.
#[component]
pub(super) fn LiveTable(rows: Memo<Vec<AuditTableRow>>) -> impl IntoView {
    let ids =
        Memo::new(move |_| rows.with(|rows| rows.iter().map(|row| row.id.clone()).collect::<Vec<String>>()));
    frame(keyed(ids, move |id| view! { <LiveRow id rows/> }.into_any()))
}

#[component]
fn LiveRow(id: String, rows: Memo<Vec<AuditTableRow>>) -> impl IntoView {
    // The last data is used while the row is being removed.
    let row = Memo::new(move |before: Option<&Option<AuditTableRow>>| {
        let found = rows.with(|rows| rows.iter().find(|row| row.id == id).cloned());
        found.or_else(|| before.cloned().flatten())
    });
    let class = move || row.with(|row| row.as_ref().map(row_class).unwrap_or_default());
    view! { <tr class=class>{changing(move || row.with(|row| row.as_ref().map(cells)))}</tr> }.into_any()
}

fn frame(rows: AnyView) -> AnyView {
    view! {
        <table class="t rec">
            <thead><tr>
                <th scope="col" class="r-n">"entry"</th><th scope="col" class="r-t">"when, UTC"</th>
                <th scope="col" class="r-a">"who"</th><th scope="col" class="r-w">"what"</th>
                <th scope="col" class="r-o">"outcome"</th><th scope="col" class="r-r">"on"</th>
                <th scope="col" class="r-y">"why"</th>
            </tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn row_class(row: &AuditTableRow) -> String {
    let flag_class = match row.flag {
        EntryFlag::Nothing => "",
        EntryFlag::Open => " is-open is-stale",
        EntryFlag::NotReviewed => " is-flagged",
    };
    format!("{}{flag_class}", row.join.class())
}

fn cells(row: &AuditTableRow) -> AnyView {
    let flag_note = match row.flag {
        EntryFlag::NotReviewed => view! { <small class="flag warning">"not reviewed"</small> }.into_any(),
        EntryFlag::Open => view! { <small class="flag">"outcome unknown"</small> }.into_any(),
        EntryFlag::Nothing => ().into_any(),
    };
    let counterpart = row.pair.as_ref().map(|(text, entry)| {
        view! { <small><a class="link" href=format!("/audit/{entry}")>{text.clone()}</a></small> }
    });
    let role = row
        .role
        .clone()
        .map(|role| view! { <span class="ink3">" "{visible(&role).into_owned()}</span> });
    let phase = row
        .phase
        .as_deref()
        .map(|phase| view! { <span class="ink2">{visible(phase).into_owned()}</span> });
    let actor = visible(&row.actor).into_owned();
    let label = format!("entry {}", row.id);
    view! {
        <th scope="row" class="r-n"><a class="link" href=format!("/audit/{}", row.id) aria-label=label>{row.id.clone()}</a></th>
        <td class="r-t">{time_cell(row.at)}</td>
        <td class="r-a"><bdi title=actor.clone()>{actor.clone()}</bdi>{role}</td>
        <td class="r-w">{row.action.clone()}" "{phase}</td>
        <td class="r-o">{badge(&row.outcome)}{flag_note}{counterpart}</td>
        <td class="r-r">{target_cell(row)}</td>
        <td class="r-y">{reason_cell(row)}</td>
    }
    .into_any()
}

fn target_cell(row: &AuditTableRow) -> AnyView {
    let backend = row
        .backend
        .clone()
        .map(|name| view! { <span class="ink2">{visible(&name).into_owned()}</span> });
    let resource = row
        .resource
        .clone()
        .map(|name| view! { <ResourceName name=name cut=true/> });
    let about = row
        .about
        .as_deref()
        .map(|name| view! { <bdi>{short(name)}</bdi> });
    let has_target = row.resource.is_some() || row.backend.is_some() || row.about.is_some();
    has_target
        .then(|| view! { <div class="on">{resource}{backend}{about}</div> })
        .into_any()
}

fn reason_cell(row: &AuditTableRow) -> AnyView {
    let reason = row
        .reason
        .as_deref()
        .map(|reason| view! { <bdi>{short(reason)}</bdi> });
    let approver = row.approver.as_deref().map(|name| {
        view! { <small class="ink2">"second approver: "<bdi>{visible(name).into_owned()}</bdi></small> }
    });
    view! { {reason}{approver} }.into_any()
}
