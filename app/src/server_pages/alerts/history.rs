//! History of a rule: who changed it, when, and the difference between versions.

use chrono::DateTime;
use domain::alerts::DraftChange;
use domain::escape::visible;
use domain::time_format;
use leptos::prelude::*;

#[derive(Debug, Clone)]
pub struct Version {
    pub number: i64,
    pub at: i64,
    pub by: String,
    /// `None`: the first version.
    pub changes: Option<Vec<DraftChange>>,
}

pub(super) fn versions(all: &[Version]) -> AnyView {
    if all.is_empty() {
        return ().into_any();
    }
    let lines = all.iter().map(one).collect_view();
    view! {
        <section class="sec" aria-labelledby="versions">
            <header><h2 id="versions">"Versions"</h2><span class="note">"newest first, with changes"</span></header>
            <ol class="als">{lines}</ol>
        </section>
    }
    .into_any()
}

fn one(version: &Version) -> AnyView {
    let at = DateTime::from_timestamp_millis(version.at).unwrap_or_default();
    let changes = match &version.changes {
        None if version.number == 1 => view! { <p class="small ink2">"The first version."</p> }.into_any(),
        None => view! { <p class="small ink2">"The previous version is no longer stored."</p> }.into_any(),
        Some(changes) if changes.is_empty() => {
            view! { <p class="small ink2">"Saved without changes."</p> }.into_any()
        }
        Some(changes) => {
            let lines = changes.iter().map(change).collect_view();
            view! { <dl class="ver small">{lines}</dl> }.into_any()
        }
    };
    view! {
        <li class="al-v">
            <p><b>{format!("version {}", version.number)}</b>" by "<bdi>{visible(&version.by).into_owned()}</bdi>
                <time class="ink2 num" datetime=time_format::iso(at)>{time_format::dated(at)}</time></p>
            {changes}
        </li>
    }
    .into_any()
}

fn change(change: &DraftChange) -> AnyView {
    let shown = |text: &str| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            visible(text).into_owned()
        }
    };
    view! {
        <div><dt class="ink2">{change.field}</dt><dd><del><bdi>{shown(&change.before)}</bdi></del>" → "<ins><bdi>{shown(&change.after)}</bdi></ins></dd></div>
    }
    .into_any()
}
