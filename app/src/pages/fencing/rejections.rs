//! One page of rejected writes; the next begins after its last row.

use domain::escape::visible;
use domain::fencing_rejections::{FencingPage, Rejection};
use domain::format;
use leptos::prelude::*;

use super::tables::{heads, listing};
use crate::components::lock_link::lock_link;
use crate::components::reactive::changing;
use crate::components::rejection_cells::{owner, tokens};
use crate::components::time::short_time;
use crate::links::{self, PageUrl};

#[component]
pub fn Rejections(data: Signal<FencingPage>, url: Signal<PageUrl>) -> impl IntoView {
    let note = move || {
        data.with(|data| {
            let (shown, total) = (data.rejections.len() as u64, data.total);
            format!(
                "{} of {}, newest first",
                format::count(shown),
                format::count(total)
            )
        })
    };
    let content = move || data.with(|data| content(data, &url.get()));
    let foot = move || data.with(|data| foot(data, &url.get()));
    let body = view! { {changing(content)}<p class="foot">{changing(foot)}</p> };
    listing(
        "rejections",
        "Rejected writes",
        changing(note).into_any(),
        body.into_any(),
    )
}

fn content(data: &FencingPage, url: &PageUrl) -> AnyView {
    if data.rejections.is_empty() {
        let none = if !url.value("before").is_empty() {
            "No older rejections in this range."
        } else if super::is_filtered(url) {
            "No matching rejections. Names are case-sensitive; only the built-in lease service records rejections."
        } else {
            "No rejections in this range."
        };
        return view! { <p class="pad">{none}</p> }.into_any();
    }
    let mut above = "";
    let mut rows = Vec::with_capacity(data.rejections.len());
    for rejection in &data.rejections {
        rows.push(row(rejection, above));
        above = &rejection.resource;
    }
    let head = heads(&[
        ("f-t", "at, UTC"),
        ("", "resource"),
        ("f-o", "stale owner"),
        ("num f-k", "token"),
        ("f-s", "rejected by"),
        ("f-w", "why"),
    ]);
    view! { <table class="t lg lg-rows"><thead>{head}</thead><tbody>{rows}</tbody></table> }.into_any()
}

fn row(row: &Rejection, above: &str) -> AnyView {
    let why = match row.reason.as_str() {
        "stale" => "newer token granted",
        "never_issued" => "never granted",
        "reported" => "rejected by the resource",
        _ => "another reason",
    };
    view! {
        <tr>
            <td class="ink2 f-t">{short_time(row.at, true)}</td>
            <td class="f-n">{lock_link(&links::named("builtin", &row.resource), &row.resource, above)}</td>
            <td class="who f-o">{owner(row)}</td>
            <td class="num f-k">{tokens(row)}</td>
            <td class="f-s"><bdi>{visible(&row.source).into_owned()}</bdi></td>
            <td class="ink2 f-w">{why}</td>
        </tr>
    }
    .into_any()
}

fn foot(data: &FencingPage, url: &PageUrl) -> Vec<AnyView> {
    let newest = (!url.value("before").is_empty()).then(|| {
        let href = url.without(&["before"]).href();
        view! { <a class="btn" href=href data-noscroll="">"Newest"</a> }.into_any()
    });
    let last = data.rejections.last().filter(|_| data.has_older);
    let older = last.map(|last| {
        let href = format!(
            "{}#rejections",
            url.with(&[("before", &last.id.to_string())]).href()
        );
        view! { <a class="btn" rel="next" href=href>"Older"</a> }.into_any()
    });
    newest.into_iter().chain(older).collect()
}
