//! Fencing rejections page: owners with stale tokens, reporters, counts over time, granted
//! tokens.

mod empty_state;
pub mod over_time;
pub mod rejections;
pub mod search;
pub mod tables;

use domain::fencing_rejections::{FencingPage as Page, RejectionFilter};
use leptos::prelude::*;
use leptos::server_fn::codec::GetUrl;

use self::over_time::OverTime;
use self::rejections::Rejections;
use self::search::Search;
use self::tables::{Grants, Reporters, StaleOwners};
use crate::api::codec::EncodedResponse;
use crate::api::error::ApiError;
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::title::PageTitle;
use crate::format;
use crate::links::PageUrl;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::navigation::use_search_of;

const PATH: &str = "/fencing";
/// Rejections, and grants of locks.
const TOPICS: Topics = Topics::ACTIVITY.and(Topics::INVENTORY);
const LEAD: &str = "Each grant raises the fencing token. A write with an older token comes from a former owner: \
    the resource rejects it and reports it here.";

/// `search` is the page's query string.
#[server(name = GetFencing, prefix = "/api", endpoint = "fencing", input = GetUrl, output = EncodedResponse)]
pub async fn fencing(search: String) -> Result<Page, ApiError> {
    let context = crate::api::error::from_context()?;
    let page = context.console.fencing(search).await;
    if let Ok(Page {
        error: Some(error), ..
    }) = &page
    {
        // The page shows it with the typed values.
        let _shown = context.set_status::<()>(Err(crate::console::ConsoleError::BadQuery(error.clone())));
    }
    context.set_status(page)
}

#[component]
pub fn FencingPage() -> impl IntoView {
    let search = use_search_of(PATH);
    let load = use_live().refreshing(TOPICS, move || search.get(), fencing);
    view! {
        <PageTitle text="Fencing"/>
        <div class="page">
            <LiveBar/>
            <LoadBoundary load shows=TOPICS let:data>
                <Body data/>
            </LoadBoundary>
        </div>
    }
}

#[component]
fn Body(data: Signal<Page>) -> impl IntoView {
    let search = use_search_of(PATH);
    let url = Signal::derive(move || PageUrl::new(PATH, &search.get()));
    let is_filtered = Memo::new(move |_| url.with(is_filtered));
    let is_unused = Memo::new(move |_| data.with(|data| data.is_unused));
    let has_rows = Memo::new(move |_| data.with(|data| data.total > 0));
    let cut_notice = move || {
        let text = data.with(|data| data.left_out.clone())?;
        Some(view! { <p class="notice warning" role="status">{text}</p> }.into_any())
    };
    let error = Memo::new(move |_| data.with(|data| data.error.clone()));
    let is_run = Memo::new(move |_| error.with(Option::is_none));
    let refused = move || {
        let error = error.get()?;
        let text = format!("{} {}.", error.field, error.message);
        Some(
            view! {
                <p class="notice critical" role="alert">{text}</p>
                <p class="foot"><a class="btn" href=PATH>"The last 24 hours"</a></p>
            }
            .into_any(),
        )
    };
    let setup_help = move || (is_unused.get() && !is_filtered.get()).then(empty_state::setup_help);
    let chart = move || (is_run.get() && !is_unused.get()).then(|| view! { <OverTime data url/> }.into_any());
    let lists = move || {
        has_rows
            .get()
            .then(|| view! { <div class="two"><StaleOwners data url/><Reporters data url/></div> }.into_any())
    };
    let rows = move || {
        (is_run.get() && (!is_unused.get() || is_filtered.get()))
            .then(|| view! { <Rejections data url/> }.into_any())
    };
    view! {
        <div class="pagehead">
            <h1>{move || data.with(|data| format::unbroken(&data.title).into_owned())}</h1>
            <p>{LEAD}{move || data.with(compared)}</p>
        </div>
        <div class="stack fencing">
            <Search data url/>
            {changing(refused)}
            {changing(cut_notice)}
            {changing(setup_help)}
            {changing(chart)}
            {changing(lists)}
            {changing(rows)}
            {changing(move || is_run.get().then(|| view! { <Grants data/> }.into_any()))}
        </div>
    }
    .into_any()
}

fn is_filtered(url: &PageUrl) -> bool {
    RejectionFilter::FILTERS
        .iter()
        .any(|name| !url.value(name).is_empty())
}

/// Comparison with the preceding span of the same length.
fn compared(data: &Page) -> Option<String> {
    let before = data.before?;
    let difference = data.total.abs_diff(before);
    Some(match difference {
        0 => " As many as in the preceding period.".to_owned(),
        _ => {
            let comparison = if data.total > before { "more" } else { "fewer" };
            format!(
                " {} {comparison} than in the preceding period.",
                format::count(difference)
            )
        }
    })
}
