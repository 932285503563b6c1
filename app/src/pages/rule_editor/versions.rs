//! Versions of a rule: who changed it, when, what; and the way to restore one.

use chrono::DateTime;
use domain::escape::visible;
use domain::time_format;
use leptos::prelude::*;

use crate::pages::rule_editor::data::VersionRow;

#[component]
pub(super) fn Versions(id: String, all: Vec<VersionRow>) -> impl IntoView {
    if all.is_empty() {
        return ().into_any();
    }
    let newest = all.first().map(|version| version.number);
    let lines: Vec<AnyView> = all
        .iter()
        .map(|version| version_item(&id, version, newest == Some(version.number)))
        .collect();
    view! {
        <section class="sec" aria-labelledby="versions">
            <header><h2 id="versions">"Versions"</h2><span class="note">"each with its changes"</span>
                <span class="end"><a class="link" href="/v1/rules?format=toml" rel="external">"Export as TOML"</a>" or "<a class="link" href="/v1/rules?format=prometheus" rel="external">"Prometheus"</a></span></header>
            <ol class="als">{lines}</ol>
        </section>
    }
    .into_any()
}

fn version_item(id: &str, version: &VersionRow, is_newest: bool) -> AnyView {
    let at = DateTime::from_timestamp_millis(version.at).unwrap_or_default();
    let changes = match &version.changes {
        None if version.number == 1 => view! { <p class="small ink2">"The first version."</p> }.into_any(),
        None => view! { <p class="small ink2">"The previous version is no longer stored."</p> }.into_any(),
        Some(changes) if changes.is_empty() => {
            view! { <p class="small ink2">"Saved without changes."</p> }.into_any()
        }
        Some(changes) => {
            let lines: Vec<AnyView> = changes.iter().map(change).collect();
            view! { <dl class="ver small">{lines}</dl> }.into_any()
        }
    };
    let restore = (!is_newest).then(|| {
        let href = format!("/alerts/rules/{id}?version={}", version.number);
        let label = format!("Restore version {} into the form", version.number);
        view! { <a class="link" href=href aria-label=label>"Restore"</a> }.into_any()
    });
    view! {
        <li class="al-v">
            <p><b>{format!("version {}", version.number)}</b>" by "<bdi>{visible(&version.by).into_owned()}</bdi>
                <time class="ink2 num" datetime=time_format::iso(at)>{time_format::dated(at)}</time>{restore}</p>
            {changes}
        </li>
    }
    .into_any()
}

fn change((field, before, after): &(String, String, String)) -> AnyView {
    let shown = |text: &str| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            visible(text).into_owned()
        }
    };
    view! {
        <div><dt class="ink2">{field.clone()}</dt><dd><del><bdi>{shown(before)}</bdi></del>" → "<ins><bdi>{shown(after)}</bdi></ins></dd></div>
    }
    .into_any()
}
