//! Table of audit entries. Steps of one forced unlock are grouped and joined by a rail; each
//! keeps its own number and time.

use chrono::{DateTime, Utc};
use domain::escape::visible;
use domain::time_format;
use leptos::prelude::*;

use super::outcome_badge::badge;
use crate::components::resource_name::ResourceName;

#[derive(Debug, Clone)]
pub struct AuditTableRow {
    pub id: String,
    pub at: DateTime<Utc>,
    pub actor: String,
    pub role: Option<String>,
    pub action: String,
    /// Of a forced unlock.
    pub phase: Option<String>,
    pub outcome: String,
    pub backend: Option<String>,
    pub resource: Option<String>,
    /// Subject of an entry that is not about a lock.
    pub about: Option<String>,
    pub reason: Option<String>,
    pub approver: Option<String>,
    pub join: Join,
    pub flag: Flag,
    /// A step of the same unlock elsewhere on the page: its label and entry.
    pub pair: Option<(String, i64)>,
}

/// Position among the steps of its unlock on this page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Join {
    #[default]
    Alone,
    First,
    Middle,
    Last,
}

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

/// Entries that need attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flag {
    #[default]
    Nothing,
    /// Begun, with an unknown outcome.
    Open,
    /// Break-glass without a review.
    NotReviewed,
}

/// Limit within a row; the entry's page has the full text.
const REASON_CHARS_MAX: usize = 160;

fn short(text: &str) -> String {
    let cut: String = text.chars().take(REASON_CHARS_MAX).collect();
    let is_cut = cut.len() < text.len();
    visible(&cut).into_owned() + if is_cut { "…" } else { "" }
}

/// `2026-03-01 03:12:41`; the column heading names UTC.
fn when(at: DateTime<Utc>) -> AnyView {
    let dated = time_format::dated(at);
    let text = dated.trim_end_matches(" UTC").to_owned();
    let (day, time) = text.split_once(' ').unwrap_or(("", &text));
    view! { <time datetime=time_format::iso(at) title=dated.clone()><span class="ink3">{day.to_owned()}" "</span>{time.to_owned()}</time> }
        .into_any()
}

pub(super) fn lines(lines: &[AuditTableRow]) -> AnyView {
    let rows = lines.iter().map(line);
    view! {
        <table class="t rec">
            <thead><tr>
                <th scope="col" class="r-n">"entry"</th><th scope="col" class="r-t">"when, UTC"</th>
                <th scope="col" class="r-a">"who"</th><th scope="col" class="r-w">"what"</th>
                <th scope="col" class="r-o">"outcome"</th><th scope="col" class="r-r">"on"</th>
                <th scope="col" class="r-y">"why"</th>
            </tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

fn line(line: &AuditTableRow) -> AnyView {
    let flag = match line.flag {
        Flag::Nothing => "",
        Flag::Open => " is-open is-stale",
        Flag::NotReviewed => " is-flagged",
    };
    let class = format!("{}{flag}", line.join.class());
    let noted = match line.flag {
        Flag::NotReviewed => view! { <small class="flag warning">"not reviewed"</small> }.into_any(),
        Flag::Open => view! { <small class="flag">"outcome unknown"</small> }.into_any(),
        Flag::Nothing => ().into_any(),
    };
    let pair = line.pair.as_ref().map(|(text, row)| {
        view! { <small><a class="link" href=format!("/audit/{row}")>{text.clone()}</a></small> }
    });
    let role = line
        .role
        .clone()
        .map(|role| view! { <span class="ink3">" "{visible(&role).into_owned()}</span> });
    let phase = line
        .phase
        .as_deref()
        .map(|phase| view! { <span class="ink2">{visible(phase).into_owned()}</span> });
    let actor = visible(&line.actor).into_owned();
    let label = format!("entry {}", line.id);
    view! {
        <tr class=class>
            <th scope="row" class="r-n"><a class="link" href=format!("/audit/{}", line.id) aria-label=label>{line.id.clone()}</a></th>
            <td class="r-t">{when(line.at)}</td>
            <td class="r-a"><bdi title=actor.clone()>{actor.clone()}</bdi>{role}</td>
            <td class="r-w">{line.action.clone()}" "{phase}</td>
            <td class="r-o">{badge(&line.outcome)}{noted}{pair}</td>
            <td class="r-r">{on(line)}</td>
            <td class="r-y">{why(line)}</td>
        </tr>
    }
    .into_any()
}

fn on(line: &AuditTableRow) -> AnyView {
    let backend = line
        .backend
        .clone()
        .map(|name| view! { <span class="ink2">{visible(&name).into_owned()}</span> });
    let resource = line
        .resource
        .clone()
        .map(|name| view! { <ResourceName name=name cut=true/> });
    let about = line
        .about
        .as_deref()
        .map(|name| view! { <bdi>{short(name)}</bdi> });
    let is_said = line.resource.is_some() || line.backend.is_some() || line.about.is_some();
    is_said
        .then(|| view! { <div class="on">{resource}{backend}{about}</div> })
        .into_any()
}

fn why(line: &AuditTableRow) -> AnyView {
    let reason = line
        .reason
        .as_deref()
        .map(|reason| view! { <bdi>{short(reason)}</bdi> });
    let approver = line.approver.as_deref().map(|name| {
        view! { <small class="ink2">"second approver: "<bdi>{visible(name).into_owned()}</bdi></small> }
    });
    view! { {reason}{approver} }.into_any()
}
