//! Contention page: heatmap of prefixes, worst prefixes with recommendations, current wait
//! trees.

mod cell_links;
mod heatmap;
mod top_prefixes;

use domain::blockers::Blocker;
use domain::charts::range::TimeRange;
use domain::contention::{By, Contention, trees};
use domain::format;
use leptos::prelude::*;

use crate::charts::range_links::range_links;
use crate::components::blocker_tree::BlockerTree;
use crate::links;
use crate::server_pages::field::alert;
use crate::server_pages::layout::{Chrome, Page, page};

pub(crate) const PATH: &str = "/contention";
/// Trees shown unless all are requested.
const TREES: usize = 4;

pub struct ContentionFilter {
    /// URL parameters as given, valid or not.
    pub pairs: Vec<(String, String)>,
    pub range: TimeRange,
    pub by: By,
    /// Backend, prefix and begin of the selected cell.
    pub cell: Option<(String, String, i64)>,
    pub all_trees: bool,
}

pub struct Shown {
    pub asked: ContentionFilter,
    pub found: Contention,
    /// Rows by refusals, if requested.
    pub worst: Contention,
    /// Largest tree first.
    pub trees: Vec<Blocker>,
    /// Why the trees may be incomplete.
    pub trees_fault: Option<String>,
    /// The user sees only a part of the names.
    pub is_cut: bool,
}

pub enum ContentionResult {
    Shown(Box<Shown>),
    /// The invalid field and its error.
    BadQuestion(String, String),
    /// The store does not answer.
    Nothing,
}

pub fn contention(chrome: &Chrome, found: &ContentionResult) -> String {
    let (title, lead, content) = match found {
        ContentionResult::Shown(shown) => {
            let words = words(shown.asked.range);
            (shown.found.title(&words), Some(shown.found.lead(&words)), body(shown))
        }
        ContentionResult::BadQuestion(field, why) => (
            "Search not run".to_owned(),
            None,
            view! { {alert(Some(format!("{field} {why}.")))}<p class="foot"><a class="btn" href=PATH>"The last 6 hours"</a></p> }.into_any(),
        ),
        ContentionResult::Nothing => (
            "History unavailable".to_owned(),
            None,
            view! {
                <div class="empty"><h3>"The store does not answer"</h3>
                <p>"New events stay in memory until the store answers."</p>
                <p class="do"><a class="btn" href=PATH>"Try again"</a></p></div>
            }
            .into_any(),
        ),
    };
    page(chrome, Page { title, lead, content })
}

fn words(range: TimeRange) -> String {
    match range {
        TimeRange::Last(last) => format!("last {}", last.word()),
        TimeRange::Between { .. } => "range".to_owned(),
    }
}

fn body(shown: &Shown) -> AnyView {
    let cut = shown.is_cut.then(|| {
        view! { <p class="notice" role="status">"Prefixes that may cover names outside your scope are omitted."</p> }
    });
    view! {
        <div class="stack contention">
            {cut}
            {heatmap::section(shown)}
            <div class="two">
                {top_prefixes::section(shown)}
                {trees_section(shown)}
            </div>
        </div>
    }
    .into_any()
}

/// URL of this page with some parameters replaced; an empty value removes one.
fn address(asked: &ContentionFilter, changes: &[(&str, &str)]) -> String {
    let kept = asked
        .pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
    let changed = changes.iter().copied().filter(|(_, value)| !value.is_empty());
    links::with_query(PATH, kept.chain(changed))
}

/// Link to the locks of a template; `None` if no prefix matches them.
fn locks(backend: &str, prefix: &str) -> Option<String> {
    let literal = domain::history::template::literal(prefix)?;
    Some(links::with_query(
        "/locks",
        [("prefix", literal), ("backend", backend)],
    ))
}

fn ranges(shown: &Shown) -> AnyView {
    // The selected cell belongs to its range.
    let others: Vec<(String, String)> = shown
        .asked
        .pairs
        .iter()
        .filter(|(name, _)| !["at", "prefix", "backend"].contains(&name.as_str()))
        .cloned()
        .collect();
    view! { <span class="end" inner_html=range_links(shown.asked.range, PATH, &others).into_string()></span> }
        .into_any()
}

fn trees_section(shown: &Shown) -> AnyView {
    let count = shown.trees.len();
    let most = if shown.asked.all_trees { count } else { TREES };
    let all = (count > most).then(|| {
        let href = address(&shown.asked, &[("trees", "all")]);
        view! { <a class="end link" href=href>{format!("All {count} trees")}</a> }
    });
    let fault = shown
        .trees_fault
        .clone()
        .map(|why| view! { <p class="small ink2 pad">{why}</p> });
    let content = if count == 0 {
        view! { <div class="empty"><h3>"No waiters now"</h3><p>"Queues are read when this page opens."</p></div> }.into_any()
    } else {
        let drawn: Vec<Blocker> = shown.trees.iter().take(most).cloned().collect();
        let below: usize = drawn.iter().map(|tree| trees::size(tree) - 1).sum();
        let note = format::counted(below as u64, "owner waits", "owners wait");
        view! { <p class="sr">{note}</p><BlockerTree blockers=drawn/> }.into_any()
    };
    view! {
        <section class="sec" aria-labelledby="trees">
            <header><h2 id="trees">"Blocker trees"</h2><span class="note">"now, most waiters first"</span>{all}</header>
            {fault}
            {content}
        </section>
    }
    .into_any()
}
