//! First step of a bulk unlock: held locks with checkboxes, and one reason for all.
//!
//! The list is read when the page opens and on request: rows do not move under the pointer, and what is selected stays
//! selected.

use domain::escape::visible;
use domain::reported::Reported;
use domain::state::LockState;
use leptos::prelude::*;

use super::super::header::external;
use super::super::parts::{name, read_again};
use super::super::refusal::Refusal;
use super::{NotBegun, SELECT, SelectedHolding};
use crate::components::live_bar::LiveBar;
use crate::components::load_boundary::LoadBoundary;
use crate::components::reactive::changing;
use crate::components::resource_name::ResourceName;
use crate::components::state_badge::StateBadge;
use crate::components::title::PageTitle;
use crate::format;
use crate::forms::console_form::{ConsoleForm, FormState, use_form};
use crate::forms::field::{SubmitButton, TextArea, options_view};
use crate::forms::filter_form::FilterForm;
use crate::links;
use crate::live::topics::Topics;
use crate::live::use_live;
use crate::navigation::use_search_of;
use crate::pages::unlock::data::{BulkSelectData, CandidateRow, unlock_candidates};
use crate::pages::unlock::refused_stream::RefusedStream;

const TITLE: &str = "Unlock several locks";

#[component]
pub fn BulkSelectPage() -> impl IntoView {
    let search = use_search_of(SELECT);
    let load = use_live().refreshing(Topics::NONE, move || search.get(), unlock_candidates);
    let read = Callback::new(move |()| load.refetch());
    view! {
        <PageTitle text=TITLE/>
        <div class="page">
            <LiveBar/>
            <RefusedStream/>
            <LoadBoundary load shows=Topics::INVENTORY let:data>
                <Body data read/>
            </LoadBoundary>
        </div>
    }
}

/// Filters of the URL, and the backends to choose from.
type Filters = ([String; 3], Vec<String>);

fn filters(data: &BulkSelectData) -> Filters {
    let values = [&data.backend, &data.prefix, &data.owner].map(Clone::clone);
    (values, data.backends.clone())
}

#[component]
fn Body(data: Signal<BulkSelectData>, read: Callback<()>) -> impl IntoView {
    let state = FormState::of_action(SELECT);
    let filters = Memo::new(move |_| data.with(filters));
    let is_empty = Memo::new(move |_| data.with(|data| data.rows.is_empty()));
    view! {
        <div class="pagehead"><h1>{TITLE}</h1><p>"Select the locks to release. This step releases nothing."</p></div>
        <Refusal state/>
        <NotBegun state has_link=true/>
        {changing(move || filters.with(filter))}
        {changing(move || match is_empty.get() {
            true => view! { <p class="pad">{move || data.with(empty_text)}</p> }.into_any(),
            false => view! { <List data filters state read/> }.into_any(),
        })}
    }
    .into_any()
}

/// Text of an empty list. It distinguishes "no lock matches" from a backend that was not read.
fn empty_text(data: &BulkSelectData) -> String {
    match (data.total, data.is_complete) {
        (0, true) => "No held lock matches.".to_owned(),
        (0, false) => "No known lock matches; not every backend is read completely.".to_owned(),
        (total, _) => format!(
            "{}; your roles may release none of them.",
            format::counted(total, "lock matches", "locks match")
        ),
    }
}

fn filter((values, backends): &Filters) -> AnyView {
    let [backend, prefix, owner] = values;
    let mut choices = vec![(String::new(), "any".to_owned())];
    choices.extend(backends.iter().map(|name| (name.clone(), name.clone())));
    let text = |name: &'static str, label: &'static str, value: &str| {
        view! {
            <div class="entry">
                <label for=name>{label}</label>
                <input id=name name=name r#type="text" autocomplete="off" value=value.to_owned() spellcheck="false" autocapitalize="none"/>
            </div>
        }
        .into_any()
    };
    let options = options_view(choices, backend);
    let texts = [text("prefix", "Prefix", prefix), text("owner", "Held by", owner)];
    let texts = texts.into_iter().collect_view().into_any();
    view! {
        <FilterForm action=SELECT class="row filter" label="held locks">
            <div class="entry">
                <label for="backend">"Backend"</label>
                <select id="backend" name="backend">{options}</select>
            </div>
            {texts}
            <div class="do"><button class="btn" r#type="submit">"Show"</button></div>
        </FilterForm>
    }
    .into_any()
}

#[component]
fn List(
    data: Signal<BulkSelectData>,
    filters: Memo<Filters>,
    state: FormState,
    read: Callback<()>,
) -> impl IntoView {
    let hidden = move || {
        let [backend, prefix, owner] = filters.with(|(values, _)| values.clone());
        let all = [("backend", backend), ("prefix", prefix), ("owner", owner)];
        let all =
            all.map(|(name, value)| view! { <input r#type="hidden" name=name value=value/> }.into_any());
        all.into_iter().collect_view().into_any()
    };
    let again = filters.with_untracked(|([backend, prefix, owner], _)| {
        links::with_query(
            SELECT,
            [("backend", backend), ("prefix", prefix), ("owner", owner)],
        )
    });
    let rows = move || data.with(|data| data.rows.clone());
    view! {
        <ConsoleForm class="several" action=SELECT state>
            {changing(hidden)}
            <section class="sec" aria-labelledby="held-head">
                <header>
                    <h2 id="held-head">"Held now"</h2>
                    <span class="note">{move || data.with(count_note)}</span>
                    <span class="end">{read_again(again, "read again", read)}</span>
                </header>
                <table class="t">
                    <thead><tr><th scope="col"><span class="sr">"select"</span></th><th scope="col">"resource"</th><th scope="col">"backend"</th>
                        <th scope="col">"held by"</th><th scope="col" class="num">"held for"</th><th scope="col">"state"</th></tr></thead>
                    <tbody><For each=rows key=row_key let:row>{row_view(&row, data)}</For></tbody>
                </table>
            </section>
            <div class="panel p2">
                <TextArea name="reason" label="Reason, for all of them" help="10 to 500 characters, recorded verbatim for each lock."/>
                <div class="do"><SubmitButton>"Continue to confirm"</SubmitButton></div>
                <p class="small ink2">"Next, you type the name of each lock. You have 2 minutes for all of them: select few at a time."</p>
            </div>
        </ConsoleForm>
    }
    .into_any()
}

fn count_note(data: &BulkSelectData) -> String {
    let shown = data.rows.len() as u64;
    if shown < data.total {
        return format!(
            "worst {shown} of {}: narrow the filter for the others",
            format::count(data.total)
        );
    }
    let known = if data.is_complete { "" } else { " known" };
    format!("{}{known}", format::counted(shown, "lock", "locks"))
}

fn selection(row: &CandidateRow) -> Reported<String> {
    let value = |generation| {
        SelectedHolding {
            backend: row.id.backend.clone(),
            source: row.id.source.clone(),
            resource: row.id.resource.text(),
            generation,
        }
        .value()
    };
    row.generation.clone().map(value)
}

/// Key of a row. It contains the generation: another holding of the same lock is a new row, which is not selected.
fn row_key(row: &CandidateRow) -> String {
    let lock = links::lock_path(&row.id);
    let generation = row.generation.known().map(ToString::to_string);
    format!("{lock} {generation:?} {:?}", row.owner_id)
}

fn held(row: &CandidateRow) -> String {
    match &row.held_ms {
        Reported::Value(ms) => format::duration(*ms),
        Reported::Unknown(_) | Reported::NotApplicable(_) => {
            format!("at least {}", format::duration(row.held_at_least_ms))
        }
    }
}

fn row_view(row: &CandidateRow, data: Signal<BulkSelectData>) -> AnyView {
    let text = row.id.resource.text();
    let (key, first) = (row_key(row), (held(row), row.state));
    let figures = Memo::new(move |before: Option<&(String, LockState)>| {
        let found = data.with(|data| {
            let row = data.rows.iter().find(|row| row_key(row) == key)?;
            Some((held(row), row.state))
        });
        found.or_else(|| before.cloned()).unwrap_or_else(|| first.clone())
    });
    let held = move || figures.with(|(held, _)| held.clone());
    let state = move || view! { <StateBadge state=figures.with(|(_, state)| *state)/> }.into_any();
    let rel = external(&text);
    view! {
        <tr>
            <td class="tick">{checkbox(row)}</td>
            <td class="res"><a class="link" href=links::lock_path(&row.id) rel=rel><ResourceName name=text/></a></td>
            <td class="ink2">{row.id.backend.to_string()}</td>
            <td class="own">{owner(row)}</td>
            <td class="num">{changing(held)}</td>
            <td>{changing(state)}</td>
        </tr>
    }
    .into_any()
}

fn checkbox(row: &CandidateRow) -> AnyView {
    match selection(row) {
        Reported::Value(value) => {
            // After a refusal without a script.
            let reply = untrack(|| use_form().reply());
            let is_checked =
                reply.is_some_and(|reply| reply.fields.all("item").any(|item| item == value));
            let label = format!("unlock {} on {}", visible(&row.id.resource.text()), row.id.backend);
            view! { <input r#type="checkbox" name="item" value=value checked=is_checked aria-label=label/> }
                .into_any()
        }
        Reported::Unknown(why) | Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=format!("it cannot be distinguished from the next grant: {why}")>"no"</span> }.into_any()
        }
    }
}

fn owner(row: &CandidateRow) -> AnyView {
    match &row.owner_id {
        Reported::Value(owner) => name(owner.as_str()),
        Reported::Unknown(why) => {
            view! { <span class="ink3" title=why.to_string()>"unknown"</span> }.into_any()
        }
        Reported::NotApplicable(why) => {
            view! { <span class="ink3" title=why.to_string()>"none"</span> }.into_any()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_list_claims_nothing_of_unread_backends() {
        let text = |total, is_complete| {
            empty_text(&BulkSelectData {
                backends: Vec::new(),
                backend: String::new(),
                prefix: String::new(),
                owner: String::new(),
                rows: Vec::new(),
                total,
                is_complete,
            })
        };
        assert_eq!(text(0, true), "No held lock matches.");
        assert!(text(0, false).contains("not every backend is read"));
        assert_eq!(
            text(2, true),
            "2\u{a0}locks match; your roles may release none of them."
        );
    }
}
