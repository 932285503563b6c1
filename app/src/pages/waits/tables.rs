//! All waits with the reason why each is believed, and the backends that report them.

use domain::escape::visible;
use domain::waits::graph::EdgeTrust;
use domain::waits::page::{WaitSourceView, WaitView, WaitsPage};
use leptos::prelude::*;

use crate::charts::wait_cycle::{evidence, waited};
use crate::components::elapsed::Age;
use crate::components::lock_link::lock_link;
use crate::components::reactive::changing;
use crate::components::state_badge::{BackendBadge, Shape};
use crate::format;
use crate::links;

/// Rows of the list; the API has more.
const ROWS_MAX: usize = 50;

#[component]
pub fn WaitList(data: Signal<WaitsPage>) -> impl IntoView {
    let note = move || {
        data.with(|data| match data.waits_total {
            0 => String::new(),
            total if total > ROWS_MAX => format!("longest {ROWS_MAX} of {}", format::count(total as u64)),
            total => format!(
                "{}, longest first",
                format::counted(total as u64, "wait", "waits")
            ),
        })
    };
    let rows = move || {
        data.with(|data| {
            data.waits
                .iter()
                .take(ROWS_MAX)
                .map(row)
                .collect::<Vec<AnyView>>()
        })
    };
    let is_empty = Memo::new(move |_| data.with(|data| data.waits.is_empty()));
    let is_unread = Memo::new(move |_| data.with(WaitsPage::is_unread));
    let content = move || {
        if is_unread.get() {
            return nothing_read("Waits: unknown");
        }
        if is_empty.get() {
            return view! { <div class="empty"><h3>"No waits now"</h3><p>"As of the last scans; backends without a queue are unknown."</p></div> }
                .into_any();
        }
        view! {
            <table class="t ws">
                <thead><tr>
                    <th scope="col">"waiter"</th><th scope="col">"lock"</th><th scope="col">"held by"</th>
                    <th scope="col">"evidence"</th><th scope="col" class="num">"waits"</th>
                </tr></thead>
                <tbody>{changing(rows)}</tbody>
            </table>
        }
        .into_any()
    };
    view! {
        <section class="sec" aria-labelledby="waits-head">
            <header><h2 id="waits-head">"All waits"</h2><span class="note">{changing(note)}</span></header>
            {changing(content)}
        </section>
    }
    .into_any()
}

pub(super) fn nothing_read(title: &'static str) -> AnyView {
    view! { <div class="empty"><h3>{title}</h3><p>"No backend that reports waiters was read."</p></div> }
        .into_any()
}

fn row(wait: &WaitView) -> AnyView {
    let class = if wait.trust == EdgeTrust::Stale {
        "is-stale"
    } else {
        ""
    };
    let evidence_text = match &wait.wants {
        Some(wants) => format!("{}: {}", evidence(wait), visible(wants)),
        None => evidence(wait),
    };
    let name = wait.lock.resource.text();
    view! {
        <tr class=class>
            <td><bdi>{visible(&wait.waiter).into_owned()}</bdi></td>
            <td>{lock_link(&links::lock_path(&wait.lock), &name, "")}<small class="ink3">{wait.lock.backend.to_string()}</small></td>
            <td><bdi>{visible(&wait.holder).into_owned()}</bdi></td>
            <td class="ink2"><bdi>{evidence_text}</bdi><small class="ink3">"read "<Age ms=wait.age_ms/>" ago"</small></td>
            <td class="num waiting">{waited(wait)}</td>
        </tr>
    }
    .into_any()
}

#[component]
pub fn WaitSources(data: Signal<WaitsPage>) -> impl IntoView {
    let rows = move || data.with(|data| data.sources.iter().map(source).collect::<Vec<AnyView>>());
    view! {
        <section class="sec" aria-labelledby="sources">
            <header><h2 id="sources">"Sources of the waits"</h2></header>
            <table class="t">
                <thead class="sr"><tr><th>"backend"</th><th>"source"</th><th>"age"</th></tr></thead>
                <tbody>{changing(rows)}</tbody>
            </table>
        </section>
    }
    .into_any()
}

fn source(source: &WaitSourceView) -> AnyView {
    let reading = match (&source.evidence, source.status.is_current()) {
        (None, _) => view! {
            <span class="st blind quiet" title="this kind of backend reports no waiters"><Shape name="unknown"/>"unknown: reports no waiters"</span>
        }
        .into_any(),
        (Some(_), false) => view! { <BackendBadge status=source.status/> }.into_any(),
        (Some(evidence), true) => view! { <span class="ink2">{evidence.clone()}</span> }.into_any(),
    };
    let more = (source.unidentified_locks > 0).then(|| {
        let locks = format::counted(
            source.unidentified_locks,
            "lock has waiters",
            "locks have waiters",
        );
        view! { <small class="ink3">{format!("{locks} that are not identified")}</small> }.into_any()
    });
    let class = if source.status.blinds_rows() {
        "is-stale"
    } else {
        ""
    };
    let age = match source.age_ms {
        Some(ms) => view! { <Age ms/> }.into_any(),
        None => "never read".into_any(),
    };
    view! {
        <tr class=class>
            <td><a class="link" href=format!("/backends#{}", source.backend)>{source.backend.to_string()}</a></td>
            <td>{reading}{more}</td>
            <td class="num ink2">{age}</td>
        </tr>
    }
    .into_any()
}
