//! Filters: a plain form that works without script, and submits itself with it.

use domain::escape::visible;
use domain::names::BackendName;
use domain::query::{Sort, SortKey};
use domain::safety::SafetyClass;
use leptos::ev::{self, Event, SubmitEvent};
use leptos::html::Form;
use leptos::prelude::*;
use leptos_router::hooks::use_navigate;
use wasm_bindgen::JsCast;
use web_sys::{FormData, HtmlInputElement};

use super::url_state::Address;
use crate::components::reactive::changing;
use crate::focus::focus;

/// Fields of the form, in URL order.
const FIELDS: [&str; 8] = [
    "backend", "prefix", "owner", "state", "safety", "q", "sort", "limit",
];

const SORTS: [(&str, Sort); 5] = [
    (
        "worst first",
        Sort {
            key: SortKey::State,
            descending: true,
        },
    ),
    (
        "by name",
        Sort {
            key: SortKey::Resource,
            descending: false,
        },
    ),
    (
        "longest held",
        Sort {
            key: SortKey::Held,
            descending: true,
        },
    ),
    (
        "least time left",
        Sort {
            key: SortKey::Remaining,
            descending: false,
        },
    ),
    (
        "most waiters",
        Sort {
            key: SortKey::Waiters,
            descending: true,
        },
    ),
];

#[component]
pub fn Filters(
    /// Names of all backends.
    backends: Signal<Vec<BackendName>>,
    address: Memo<Address>,
) -> impl IntoView {
    let form = NodeRef::<Form>::new();
    let navigate = use_navigate();
    let submit = move |event: SubmitEvent| {
        event.prevent_default();
        if let Some(form) = form.get_untracked() {
            navigate(&Address::from_fields(fields(&form)).href(), Default::default());
        }
    };
    let change = move |event: Event| {
        let input = event
            .target()
            .and_then(|target| target.dyn_into::<HtmlInputElement>().ok());
        let is_text = input.is_some_and(|input| matches!(input.type_().as_str(), "search" | "text"));
        if let (false, Some(form)) = (is_text, form.get_untracked()) {
            let _ = form.request_submit();
        }
    };
    close_elsewhere(form);
    view! {
        <form class="filters" method="get" action="/locks" role="search" aria-label="this list" node_ref=form on:submit=submit on:change=change>
            <Search address/>
            <BackendChoice backends address/>
            <OwnerChoice address/>
            <SafetyChoice address/>
            <SortChoice address/>
            {move || hidden_fields(&address.get())}
            <button class="btn apply">"Apply"</button>
        </form>
    }
}

/// Closes an open choice on a click elsewhere or Escape. In the browser only.
fn close_elsewhere(form: NodeRef<Form>) {
    let close = move |but: Option<&web_sys::Node>| {
        let open = form
            .try_get_untracked()
            .flatten()
            .and_then(|form| form.query_selector("details[open]").ok().flatten());
        if let Some(open) = open.filter(|open| !open.contains(but)) {
            // Closing a filter hides its fields: the focus goes to its summary.
            if let Ok(Some(summary)) = open.query_selector(":focus-within > summary") {
                focus(&summary);
            }
            let _ = open.remove_attribute("open");
        }
    };
    Effect::new(move |_| {
        let clicked = window_event_listener(ev::pointerdown, move |event| {
            let target = event
                .target()
                .and_then(|target| target.dyn_into::<web_sys::Node>().ok());
            close(target.as_ref());
        });
        let pressed = window_event_listener(ev::keydown, move |event| {
            if event.key() == "Escape" {
                close(None);
            }
        });
        on_cleanup(move || {
            clicked.remove();
            pressed.remove();
        });
    });
}

fn fields(form: &web_sys::HtmlFormElement) -> Vec<(String, String)> {
    let Ok(data) = FormData::new_with_form(form) else {
        return Vec::new();
    };
    let values = |name: &'static str| {
        data.get_all(name)
            .iter()
            .filter_map(move |value| Some((name.to_owned(), value.as_string()?)))
            .collect::<Vec<_>>()
    };
    let default = Sort::default().to_query_value();
    FIELDS
        .into_iter()
        .flat_map(values)
        .filter(|(name, value)| !(name == "sort" && *value == default))
        .collect()
}

/// Hidden fields for URL parameters that the form does not show.
fn hidden_fields(address: &Address) -> impl IntoView + use<> {
    let keep = |name: &'static str| {
        let values: Vec<String> = address.all(name).map(str::to_owned).collect();
        values
            .into_iter()
            .map(move |value| view! { <input type="hidden" name=name value=value/> }.into_any())
            .collect_view()
    };
    view! { {keep("prefix")} {keep("state")} {keep("limit")} }
}

#[component]
fn Search(address: Memo<Address>) -> impl IntoView {
    let q = move || address.with(|address| address.first("q").to_owned());
    let prefix = move || address.with(|address| address.first("prefix").to_owned());
    let chip = move || {
        let prefix = prefix();
        (!prefix.is_empty()).then(|| {
            let href = address.get().with("prefix", "").href();
            let shown = visible(&prefix).into_owned();
            view! {
                <a class="chip" href=href title="Any prefix">
                    <span class="sr">"Remove the prefix "</span><bdi class="mono">{shown}</bdi><span aria-hidden="true">"×"</span>
                </a>
            }.into_any()
        })
    };
    view! {
        <label class="field grow">
            <span class="ink3 small">"prefix"</span>
            {changing(chip)}
            {move || prefix().is_empty().then(|| view! { <span class="mono">"any"</span> }.into_any())}
            <span class="sr">"Part of a name or of an owner"</span>
            <input
                type="search" name="q" autocomplete="off" spellcheck="false" data-search="page"
                placeholder="part of a name or of an owner" value=q prop:value=q
            />
            <kbd aria-hidden="true">"/"</kbd>
        </label>
    }
}

#[component]
fn BackendChoice(backends: Signal<Vec<BackendName>>, address: Memo<Address>) -> impl IntoView {
    let chosen =
        move || address.with(|address| address.all("backend").map(str::to_owned).collect::<Vec<_>>());
    let summary = move || match (chosen(), backends.with(Vec::len)) {
        (chosen, all) if chosen.is_empty() => format!("all {all}"),
        (chosen, _) if chosen.len() == 1 => chosen.concat(),
        (chosen, all) => format!("{} of {all}", chosen.len()),
    };
    // A selected backend that is not configured stays visible, so that it can be deselected.
    let listed = move || {
        let mut names: Vec<String> = backends.with(|names| names.iter().map(ToString::to_string).collect());
        names.extend(
            chosen()
                .into_iter()
                .filter(|name| backends.with(|all| all.iter().all(|known| known.as_str() != name))),
        );
        names
    };
    view! {
        <details class="sel" name="filters">
            <summary>"backend "<b>{changing(summary)}</b></summary>
            <fieldset class="pop">
                <legend class="sr">"backend"</legend>
                {move || listed().into_iter().map(|name| {
                    let checked = address.get().has("backend", &name);
                    view! {
                        <label class="tick">
                            <input type="checkbox" name="backend" value=name.clone() checked=checked prop:checked=checked/>
                            {name}
                        </label>
                    }.into_any()
                }).collect_view()}
            </fieldset>
        </details>
    }
}

#[component]
fn OwnerChoice(address: Memo<Address>) -> impl IntoView {
    let owner = move || address.with(|address| address.first("owner").to_owned());
    let summary = move || match owner() {
        owner if owner.is_empty() => "any".to_owned(),
        owner => visible(&owner).into_owned(),
    };
    view! {
        <details class="sel" name="filters">
            <summary>"owner "<b><bdi>{changing(summary)}</bdi></b></summary>
            <div class="pop">
                <label class="small ink2" for="owner">"exactly this owner"</label>
                <div class="field"><input id="owner" type="text" name="owner" autocomplete="off" spellcheck="false" value=owner prop:value=owner/></div>
            </div>
        </details>
    }
}

#[component]
fn SafetyChoice(address: Memo<Address>) -> impl IntoView {
    let is = move |value: &'static str| address.with(|address| address.first("safety") == value);
    let option = move |value: &'static str, label: &'static str| {
        view! { <option value=value selected=move || is(value) prop:selected=move || is(value)>{label}</option> }.into_any()
    };
    view! {
        <label class="sel"><span>"safety class"</span>
            <select name="safety" aria-label="safety class">
                {option("", "any")}
                {option(SafetyClass::Correctness.as_str(), "correctness")}
                {option(SafetyClass::Efficiency.as_str(), "efficiency")}
            </select>
        </label>
    }
}

#[component]
fn SortChoice(address: Memo<Address>) -> impl IntoView {
    let listed = move || {
        let now = address.get().sort();
        let mut sorts = SORTS.to_vec();
        if SORTS.iter().all(|(_, sort)| *sort != now) {
            sorts.push(("by column", now));
        }
        sorts
    };
    view! {
        <label class="sel"><span>"sort"</span>
            <select name="sort" aria-label="sort">
                {move || listed().into_iter().map(|(label, sort)| {
                    let selected = sort == address.get().sort();
                    view! { <option value=sort.to_query_value() selected=selected prop:selected=selected>{label}</option> }.into_any()
                }).collect_view()}
            </select>
        </label>
    }
}
