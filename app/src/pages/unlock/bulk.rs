//! Bulk unlock: several forced unlocks, selected one by one, each confirmed by its own name.
//! Only selected locks are affected, also after the page is reloaded, shared or filtered.

pub mod confirm;
pub mod select;
mod selected_holding;

use leptos::prelude::*;

use super::parts::notice;
use crate::components::reactive::changing;
use crate::format;
use crate::forms::console_form::FormState;
use crate::links;

pub use selected_holding::SelectedHolding;

/// URLs of selection and confirmation.
pub const SELECT: &str = "/unlocks";
pub const CONFIRM: &str = "/unlocks/bulk";

/// Names of the reply's values: for each selected lock without an intent, its name and the reason;
/// and the URL where the others are confirmed.
pub const NOT_BEGUN: &str = "not_begun";
pub const CONFIRM_URL: &str = "confirm_url";

/// URL of the second page for these ids; it cannot name others.
pub fn confirm_path<'a>(ids: impl IntoIterator<Item = &'a str>) -> String {
    links::with_query(CONFIRM, ids.into_iter().map(|id| ("id", id)))
}

/// Name of the field in which the lock's name is typed.
pub fn typed_field(unlock_id: &str) -> String {
    format!("resource-{unlock_id}")
}

/// Selected locks without an intent. On the first page with a link to the others.
#[component]
fn NotBegun(state: FormState, has_link: bool) -> impl IntoView {
    let reply = Memo::new(move |_| state.reply());
    changing(move || {
        let reply = reply.get()?;
        let of_name = |(name, why): &(String, String)| (name == NOT_BEGUN).then(|| why.clone());
        let reasons: Vec<String> = reply.values.iter().filter_map(of_name).collect();
        let confirm = reply.value(CONFIRM_URL).filter(|_| has_link);
        (!reasons.is_empty()).then(|| not_begun(&reasons, confirm))
    })
}

fn not_begun(reasons: &[String], confirm: Option<&str>) -> AnyView {
    let items = reasons
        .iter()
        .map(|why| view! { <li>{notice(why)}</li> }.into_any());
    let title = format::counted(
        reasons.len() as u64,
        "lock cannot be unlocked now",
        "locks cannot be unlocked now",
    );
    let confirm = confirm
        .map(|href| view! { <p><a class="btn" href=href.to_owned()>"Confirm the others"</a></p> }.into_any());
    view! {
        <div class="notice critical refusal" role="alert">
            <p><b>{title}</b></p>
            <ul>{items.collect_view()}</ul>
            {confirm}
        </div>
    }
    .into_any()
}
