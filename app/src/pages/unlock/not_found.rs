//! No lock to unlock: what is known, and links.

use domain::escape::visible;
use domain::names::Source;
use leptos::prelude::*;

use super::parts::notice;
use crate::api::error::set_status;
use crate::components::empty_state::Empty;
use crate::components::title::PageTitle;
use crate::links;
use crate::pages::unlock::data::NothingToUnlock;

/// HTTP status where several sources of one backend have the name.
const CONFLICT: u16 = 409;

/// The lock is free, or the unlock does not exist.
pub(super) fn nothing(title: &'static str, nothing: &NothingToUnlock) -> AnyView {
    set_status(nothing.status);
    let name = nothing.name.as_deref();
    let search = name.map(|name| {
        let by_name = links::with_query("/locks", [("q", links::filter_value(name))]);
        view! { <a class="btn" href=by_name>"Search all backends"</a> }.into_any()
    });
    let note = name.map(|_| {
        view! { <p class="small">"It may have been released: only held locks are listed."</p> }.into_any()
    });
    let why = notice(&nothing.why);
    view! {
        <PageTitle text=title/>
        <Empty title=title whole=true>
            <p>{why}</p>
            {note}
            <div class="do">{search}<a class="btn" href="/locks">"All locks"</a></div>
        </Empty>
    }
    .into_any()
}

/// Several sources of one backend have the name.
pub(super) fn choose(name: &str, sources: &[Source]) -> AnyView {
    set_status(CONFLICT);
    let choices = sources.iter().map(|source| {
        let query = links::with_query("", [("source", source.as_str())]);
        view! { <li><a class="link mono" href=query rel="external">{source.to_string()}</a></li> }.into_any()
    });
    let choices = choices.collect_view();
    let name = visible(name).into_owned();
    view! {
        <PageTitle text="Several locks have this name"/>
        <Empty title="Several locks have this name" whole=true>
            <p><bdi class="mono">{name}</bdi></p>
            <p>"Select one:"</p>
            <ul class="choices">{choices}</ul>
        </Empty>
    }
    .into_any()
}
