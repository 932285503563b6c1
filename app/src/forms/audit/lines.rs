//! Rows of the record as a table. Steps of one forced unlock stand together, tied by a rail, so that intent and outcome
//! are read as one thing; each keeps its own number and time.

use chrono::{DateTime, Utc};
use domain::escape::visible;
use domain::moment;
use leptos::prelude::*;

use super::look::badge;
use crate::components::resource_name::ResourceName;

#[derive(Debug, Clone)]
pub struct Line {
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
    /// What it is about where that is no lock.
    pub about: Option<String>,
    pub reason: Option<String>,
    pub approver: Option<String>,
    pub join: Join,
    pub flag: Flag,
    /// The step that belongs to it and stands elsewhere: what it says, and its row.
    pub pair: Option<(String, i64)>,
}

/// Where it stands among the steps of its unlock on this page.
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

/// What must not be overlooked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Flag {
    #[default]
    Nothing,
    /// Begun, and nobody knows yet how it ended.
    Open,
    /// Done alone, and nobody has looked at it.
    NotReviewed,
}

/// On a line; the whole text is on the row's own page.
const REASON_CHARS_MAX: usize = 160;

fn short(text: &str) -> String {
    let cut: String = text.chars().take(REASON_CHARS_MAX).collect();
    let is_cut = cut.len() < text.len();
    visible(&cut).into_owned() + if is_cut { "…" } else { "" }
}

/// `2026-03-01 03:12:41`; the head of the column says that it is UTC.
fn when(at: DateTime<Utc>) -> AnyView {
    let dated = moment::dated(at);
    let text = dated.trim_end_matches(" UTC").to_owned();
    let (day, time) = text.split_once(' ').unwrap_or(("", &text));
    view! { <time datetime=moment::iso(at) title=dated.clone()><span class="ink3">{day.to_owned()}" "</span>{time.to_owned()}</time> }
        .into_any()
}

pub(super) fn lines(lines: &[Line]) -> AnyView {
    let rows = lines.iter().map(line);
    view! {
        <table class="t rec">
            <thead><tr>
                <th scope="col" class="r-n">"row"</th><th scope="col" class="r-t">"when, UTC"</th>
                <th scope="col" class="r-a">"who"</th><th scope="col" class="r-w">"what"</th>
                <th scope="col" class="r-o">"outcome"</th><th scope="col" class="r-r">"on"</th>
                <th scope="col" class="r-y">"why"</th>
            </tr></thead>
            <tbody>{rows.collect_view()}</tbody>
        </table>
    }
    .into_any()
}

fn line(line: &Line) -> AnyView {
    let flag = match line.flag {
        Flag::Nothing => "",
        Flag::Open => " is-open is-stale",
        Flag::NotReviewed => " is-flagged",
    };
    let class = format!("{}{flag}", line.join.class());
    let noted = match line.flag {
        Flag::NotReviewed => view! { <small class="flag warning">"alone, not reviewed"</small> }.into_any(),
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
    let label = format!("row {}", line.id);
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

fn on(line: &Line) -> AnyView {
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

fn why(line: &Line) -> AnyView {
    let reason = line
        .reason
        .as_deref()
        .map(|reason| view! { <bdi>{short(reason)}</bdi> });
    let approver = line.approver.as_deref().map(|name| {
        view! { <small class="ink2">"second person: "<bdi>{visible(name).into_owned()}</bdi></small> }
    });
    view! { {reason}{approver} }.into_any()
}
