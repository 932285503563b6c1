//! Filters and time range. A plain form that works without a script.

use domain::charts::range::TimeRange;
use domain::fencing_rejections::{FencingPage, RejectionFilter};
use leptos::ev::SubmitEvent;
use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast;
use web_sys::{FormData, HtmlFormElement};

use super::PATH;
use crate::charts::range_links::RangeLinks;
use crate::components::reactive::changing;
use crate::links::PageUrl;

#[component]
pub fn Search(data: Signal<FencingPage>, url: Signal<PageUrl>) -> impl IntoView {
    let navigate = use_navigate();
    let submit = move |event: SubmitEvent| {
        if let Some(filters) = form_filters(&event) {
            event.prevent_default();
            let filters: Vec<(&str, &str)> = filters
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .collect();
            let url = url.get_untracked();
            let range = TimeRange::FIELDS.map(|name| (name, url.value(name)));
            navigate(
                &PageUrl::new(PATH, "").with(&filters).with(&range).href(),
                Default::default(),
            );
        }
    };
    // The filters keep the range.
    let range_fields = move || {
        let url = url.get();
        let range = url
            .pairs()
            .iter()
            .filter(|(name, _)| TimeRange::FIELDS.contains(&name.as_str()));
        let hidden = |(name, value): &(String, String)| {
            view! { <input r#type="hidden" name=name.clone() value=value.clone()/> }.into_any()
        };
        range.map(hidden).collect::<Vec<AnyView>>()
    };
    let wrong = Memo::new(move |_| data.with(|data| data.error.as_ref().map(|error| error.field.clone())));
    let range = Memo::new(move |_| data.with(|data| data.range.clone()));
    let ranges = Signal::derive(move || url.get().without(&["before"]));
    let clear = move || {
        url.with(super::is_filtered)
            .then(|| view! { <a class="btn plain" href=PATH>"Clear"</a> }.into_any())
    };
    view! {
        <div class="sec fencing-asked">
            <form class="audit-search" method="get" action=PATH role="search" aria-label="fencing rejections" on:submit=submit>
                {search_field("prefix", "Resource begins with", url, wrong)}
                {search_field("owner", "Stale owner", url, wrong)}
                {search_field("source", "Rejected by", url, wrong)}
                {backends(data, url)}
                {changing(range_fields)}
                <div class="do"><button class="btn solid" r#type="submit">"Search"</button>{changing(clear)}</div>
            </form>
            <RangeLinks range url=ranges/>
        </div>
    }
    .into_any()
}

fn form_filters(event: &SubmitEvent) -> Option<Vec<(&'static str, String)>> {
    let form: HtmlFormElement = event.target()?.dyn_into().ok()?;
    let data = FormData::new_with_form(&form).ok()?;
    let value = |name| (name, data.get(name).as_string().unwrap_or_default());
    Some(RejectionFilter::FILTERS.map(value).into())
}

/// `wrong` is the field of an invalid query.
fn search_field(
    name: &'static str,
    label: &'static str,
    url: Signal<PageUrl>,
    wrong: Memo<Option<String>>,
) -> AnyView {
    let invalid = move || {
        wrong
            .with(|wrong| wrong.as_deref() == Some(name))
            .then_some("true")
    };
    let value = move || url.with(|url| url.value(name).to_owned());
    let first = url.with_untracked(|url| url.value(name).to_owned());
    view! {
        <div class="entry">
            <label for=name>{label}</label>
            <input
                id=name
                name=name
                r#type="text"
                value=first
                prop:value=value
                aria-invalid=invalid
                autocomplete="off"
                spellcheck="false"
                autocapitalize="none"
            />
        </div>
    }
    .into_any()
}

fn backends(data: Signal<FencingPage>, url: Signal<PageUrl>) -> AnyView {
    let names = Memo::new(move |_| data.with(|data| data.backends.clone()));
    let options = move || {
        let chosen = url.with(|url| url.value("backend").to_owned());
        let names = std::iter::once((String::new(), "every backend".to_owned()))
            .chain(names.get().into_iter().map(|name| (name.clone(), name)));
        let option = |(value, label): (String, String)| {
            let is_chosen = value == chosen;
            view! { <option value=value selected=is_chosen>{label}</option> }.into_any()
        };
        names.map(option).collect::<Vec<AnyView>>()
    };
    view! {
        <div class="entry">
            <label for="backend">"Backend"</label>
            <select id="backend" name="backend">{changing(options)}</select>
        </div>
    }
    .into_any()
}
