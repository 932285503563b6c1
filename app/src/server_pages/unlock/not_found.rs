//! No lock to unlock: what is known, and links.

use domain::escape::visible;
use domain::names::Source;
use leptos::prelude::*;

use super::layout::notice;
use crate::components::empty_state::Empty;
use crate::links;
use crate::server_pages::layout::{Chrome, page_under};

/// The lock is free, or the unlock does not exist.
pub fn not_found_page(chrome: &Chrome, title: &'static str, why: &str, sought: Option<&str>) -> String {
    let sought = sought.map(|name| {
        let by_name = links::with_query("/locks", [("q", name)]);
        view! { <a class="btn" href=by_name>"Search all backends"</a> }
    });
    let note = sought.is_some().then(|| {
        view! { <p class="small">"It may have been released: only held locks are listed."</p> }
    });
    let why = notice(why);
    let content = view! {
        <Empty title=title whole=true>
            <p>{why}</p>
            {note}
            <div class="do">{sought}<a class="btn" href="/locks">"All locks"</a></div>
        </Empty>
    };
    page_under(chrome, title, ().into_any(), content.into_any())
}

/// Several sources of one backend have the name.
pub fn choose(chrome: &Chrome, name: &str, sources: &[Source]) -> String {
    let choices = sources.iter().map(|source| {
        let query = links::with_query("", [("source", source.as_str())]);
        view! { <li><a class="link mono" href=query>{source.to_string()}</a></li> }
    });
    let choices = choices.collect_view();
    let name = visible(name).into_owned();
    let content = view! {
        <Empty title="Several locks have this name" whole=true>
            <p><bdi class="mono">{name}</bdi></p>
            <p>"Which one do you mean?"</p>
            <ul class="choices">{choices}</ul>
        </Empty>
    };
    page_under(
        chrome,
        "Several locks have this name",
        ().into_any(),
        content.into_any(),
    )
}
