//! A name without a lock, or with several: what is known, and links.

use domain::escape::visible;
use domain::names::Source;
use leptos::prelude::*;

use crate::components::empty_state::Empty;
use crate::components::resource_name::ResourceName;
use crate::components::title::PageTitle;
use crate::format;
use crate::links;

#[component]
pub fn Missing(backend: String, resource: String, what: String) -> impl IntoView {
    let by_name = links::with_query("/locks", [("q", links::filter_value(&resource))]);
    let prefix = &resource[..domain::name_tree::boundary(resource.as_bytes())];
    let neighbours = (!prefix.is_empty())
        .then(|| view! { <a class="btn" href=links::prefix(prefix)>"Nearby locks"</a> }.into_any());
    view! {
        <PageTitle text="No such lock"/>
        <Empty title="No such lock" whole=true>
            <p><ResourceName name=resource/>" on "{visible(&backend).into_owned()}</p>
            <p><bdi>{format::prose(&what)}</bdi></p>
            <p class="small">"It is neither in the history nor in the fencing rejections."</p>
            <div class="do">
                <a class="btn" href=by_name>"Search all backends"</a>
                {neighbours}
                <a class="btn" href="/backends">"Backends"</a>
            </div>
        </Empty>
    }
}

#[component]
pub fn BadAddress(what: String) -> impl IntoView {
    view! {
        <PageTitle text="No such lock"/>
        <Empty title="Invalid lock address" whole=true>
            <p><bdi>{format::prose(&what)}</bdi></p>
            <div class="do"><a class="btn" href="/locks">"All locks"</a></div>
        </Empty>
    }
}

#[component]
pub fn Choose(backend: String, resource: String, sources: Vec<Source>) -> impl IntoView {
    let choices = sources
        .into_iter()
        .map(|source| {
            let href = format!(
                "?{}",
                links::with_query("", [("source", source.as_str())]).trim_start_matches('?')
            );
            view! { <li><a class="link mono" href=href rel="external">{source.to_string()}</a></li> }
                .into_any()
        })
        .collect_view();
    view! {
        <PageTitle text="Several locks have this name"/>
        <Empty title="Several locks have this name" whole=true>
            <p><ResourceName name=resource/></p>
            <p>{visible(&backend).into_owned()}" holds it in more than one source. Select one:"</p>
            <ul class="choices">{choices}</ul>
        </Empty>
    }
}
