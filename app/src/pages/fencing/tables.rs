//! Stale owners, reporting sources and latest grants.

use domain::escape::visible;
use domain::fencing_rejections::{FencingPage, LatestGrant, Reporter, StaleOwner};
use leptos::prelude::*;

use crate::components::lock_link::lock_link;
use crate::components::reactive::changing;
use crate::components::time::short_time;
use crate::format;
use crate::links::{self, PageUrl};

/// A section with a list.
pub(super) fn listing(id: &'static str, title: &'static str, note: AnyView, content: AnyView) -> AnyView {
    let head_id = format!("{id}-head");
    let labelled = head_id.clone();
    view! {
        <section class="sec" id=id aria-labelledby=labelled>
            <header><h2 id=head_id>{title}</h2><span class="note">{note}</span></header>
            {content}
        </section>
    }
    .into_any()
}

/// The row of a table's head.
pub(super) fn heads(heads: &[(&'static str, &'static str)]) -> AnyView {
    let cells: Vec<AnyView> = heads
        .iter()
        .map(|(class, heading)| view! { <th scope="col" class=*class>{*heading}</th> }.into_any())
        .collect();
    view! { <tr>{cells}</tr> }.into_any()
}

/// A name that filters the page.
fn filter_link(url: &PageUrl, field: &str, value: &str) -> AnyView {
    let href = url.with(&[(field, value), ("before", "")]).href();
    view! { <a class="link" href=href data-noscroll=""><bdi>{visible(value).into_owned()}</bdi></a> }
        .into_any()
}

#[component]
pub fn StaleOwners(data: Signal<FencingPage>, url: Signal<PageUrl>) -> impl IntoView {
    let note = move || {
        let total = data.with(|data| data.stale_total);
        format!("{}, most writes first", format::counted(total, "owner", "owners"))
    };
    let rows = move || {
        let url = url.get();
        data.with(|data| {
            data.stale
                .iter()
                .map(|row| stale(row, &url))
                .collect::<Vec<AnyView>>()
        })
    };
    let head = heads(&[
        ("", "owner"),
        ("num", "rejected"),
        ("num", "locks"),
        ("", "last, UTC"),
        ("", "last on"),
    ]);
    let table = view! {
        <table class="t lg lg-stale"><thead>{head}</thead><tbody>{changing(rows)}</tbody></table>
    };
    listing(
        "stale",
        "Stale owners",
        changing(note).into_any(),
        table.into_any(),
    )
}

fn stale(row: &StaleOwner, url: &PageUrl) -> AnyView {
    let owner = match &row.owner {
        Some(owner) => filter_link(url, "owner", owner.as_str()),
        None => view! { <span class="ink3">"unknown owner"</span> }.into_any(),
    };
    view! {
        <tr>
            <td class="who">{owner}</td>
            <td class="num critical-count">{format::count(row.writes)}</td>
            <td class="num">{format::count(row.locks)}</td>
            <td class="ink2">{short_time(row.last_at, true)}</td>
            <td>{lock_link(&links::named("builtin", &row.resource), &row.resource, "")}</td>
        </tr>
    }
    .into_any()
}

#[component]
pub fn Reporters(data: Signal<FencingPage>, url: Signal<PageUrl>) -> impl IntoView {
    let note = move || {
        let total = data.with(|data| data.reporters_total);
        format!("{}, newest first", format::counted(total, "source", "sources"))
    };
    let rows = move || {
        let url = url.get();
        data.with(|data| {
            data.reporters
                .iter()
                .map(|row| reporter(row, &url))
                .collect::<Vec<AnyView>>()
        })
    };
    let head = heads(&[
        ("", "source"),
        ("num", "rejected"),
        ("num", "locks"),
        ("", "last, UTC"),
    ]);
    let table = view! {
        <table class="t lg lg-from"><thead>{head}</thead><tbody>{changing(rows)}</tbody></table>
    };
    listing(
        "sources",
        "Reporting sources",
        changing(note).into_any(),
        table.into_any(),
    )
}

fn reporter(row: &Reporter, url: &PageUrl) -> AnyView {
    view! {
        <tr>
            <td class="who">{filter_link(url, "source", &row.source)}</td>
            <td class="num">{format::count(row.writes)}</td>
            <td class="num">{format::count(row.locks)}</td>
            <td class="ink2">{short_time(row.last_at, true)}</td>
        </tr>
    }
    .into_any()
}

#[component]
pub fn Grants(data: Signal<FencingPage>) -> impl IntoView {
    let grants = Memo::new(move |_| data.with(|data| data.grants.clone()));
    let content = move || {
        grants.with(|grants| {
            let Some(grants) = grants else {
                return view! { <p class="pad">"Unknown: grants could not be read. The next refresh tries again."</p> }
                    .into_any();
            };
            if grants.is_empty() {
                return view! { <p class="pad">"No grants with a token in this range."</p> }.into_any();
            }
            let mut above = String::new();
            let mut rows = Vec::with_capacity(grants.len());
            for row in grants {
                rows.push(grant(row, &above));
                above = row.lock.resource.text();
            }
            let head = heads(&[
                ("f-t", "at, UTC"),
                ("", "resource"),
                ("f-s", "backend"),
                ("f-o", "owner"),
                ("num f-k", "token"),
                ("f-w", "how"),
            ]);
            view! { <table class="t lg lg-rows"><thead>{head}</thead><tbody>{rows}</tbody></table> }
                .into_any()
        })
    };
    let note = "all backends with tokens, newest first".into_any();
    listing("grants", "Latest grants", note, changing(content).into_any())
}

fn grant(row: &LatestGrant, above: &str) -> AnyView {
    let owner = match &row.owner {
        Some(owner) => view! { <bdi>{visible(owner.as_str()).into_owned()}</bdi> }.into_any(),
        None => view! { <span class="ink3">"unknown"</span> }.into_any(),
    };
    view! {
        <tr>
            <td class="ink2 f-t">{short_time(row.at, true)}</td>
            <td class="f-n">{lock_link(&links::lock_path(&row.lock), &row.lock.resource.text(), above)}</td>
            <td class="ink2 f-s">{row.lock.backend.as_str().to_owned()}</td>
            <td class="who f-o">{owner}</td>
            <td class="num f-k">{row.token.map(|token| token.to_string())}</td>
            <td class="ink2 f-w">{row.kind.label()}</td>
        </tr>
    }
    .into_any()
}
