//! Where waiting happens, as people read it: the map of prefixes by time, the worst prefixes with what to do about them, and
//! who blocks whom now.

mod map;
mod steps;
mod worst;

use domain::blockers::Blocker;
use domain::charts::range::TimeRange;
use domain::contention::{By, Contention, trees};
use domain::human;
use leptos::prelude::*;

use crate::charts::range_links::range_links;
use crate::components::blocker_tree::BlockerTree;
use crate::forms::chrome::{Chrome, Page, page};
use crate::forms::field::alert;
use crate::links;

pub(crate) const PATH: &str = "/contention";
/// Trees that are shown unless all are asked for.
const TREES: usize = 4;

pub struct Asked {
    /// As they stand in the address, good or not.
    pub pairs: Vec<(String, String)>,
    pub range: TimeRange,
    pub by: By,
    /// Backend, prefix and beginning of the selected cell.
    pub cell: Option<(String, String, i64)>,
    pub all_trees: bool,
}

pub struct Shown {
    pub asked: Asked,
    pub found: Contention,
    /// Rows by refusals, where they are asked for.
    pub worst: Contention,
    /// Most below the root first.
    pub trees: Vec<Blocker>,
    /// Why the trees may be incomplete.
    pub trees_fault: Option<String>,
    /// Who looks sees a part of the names.
    pub is_cut: bool,
}

pub enum Found {
    Shown(Box<Shown>),
    /// Field, and what is wrong with it.
    BadQuestion(String, String),
    /// The store does not answer.
    Nothing,
}

pub fn contention(chrome: &Chrome, found: &Found) -> String {
    let (title, lead, content) = match found {
        Found::Shown(shown) => {
            let words = words(shown.asked.range);
            (shown.found.title(&words), Some(shown.found.lead(&words)), body(shown))
        }
        Found::BadQuestion(field, why) => (
            "Nothing was looked for".to_owned(),
            None,
            view! { {alert(Some(format!("{field} {why}.")))}<p class="foot"><a class="btn" href=PATH>"The last 6 hours"</a></p> }.into_any(),
        ),
        Found::Nothing => (
            "History cannot be read now".to_owned(),
            None,
            view! {
                <div class="empty"><h3>"Its store does not answer"</h3>
                <p>"What is seen meanwhile is kept in memory and written when it answers again."</p>
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
        view! { <p class="notice" role="status">"Prefixes that may stand for names beyond yours are left out, with all their numbers."</p> }
    });
    view! {
        <div class="stack contention">
            {cut}
            {map::section(shown)}
            <div class="two">
                {worst::section(shown)}
                {trees_section(shown)}
            </div>
        </div>
    }
    .into_any()
}

/// The address of this page with some pairs of it replaced; an empty value takes one out.
fn address(asked: &Asked, changes: &[(&str, &str)]) -> String {
    let kept = asked
        .pairs
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .filter(|(name, _)| !changes.iter().any(|(changed, _)| changed == name));
    let changed = changes.iter().copied().filter(|(_, value)| !value.is_empty());
    links::with_query(PATH, kept.chain(changed))
}

/// Locks that a template stands for, as far as a prefix can say it; none where it cannot.
fn locks(backend: &str, prefix: &str) -> Option<String> {
    let literal = domain::history::template::literal(prefix)?;
    Some(links::with_query(
        "/locks",
        [("prefix", literal), ("backend", backend)],
    ))
}

fn ranges(shown: &Shown) -> AnyView {
    // A selected cell belongs to its range.
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
        view! { <div class="empty"><h3>"Nobody waits for anybody now"</h3><p>"Queues are read fresh when this page is opened."</p></div> }.into_any()
    } else {
        let drawn: Vec<Blocker> = shown.trees.iter().take(most).cloned().collect();
        let below: usize = drawn.iter().map(|tree| trees::size(tree) - 1).sum();
        let note = human::counted(below as u64, "owner waits", "owners wait");
        view! { <p class="sr">{note}</p><BlockerTree blockers=drawn/> }.into_any()
    };
    view! {
        <section class="sec" aria-labelledby="trees">
            <header><h2 id="trees">"Who blocks whom"</h2><span class="note">"now, most below first"</span>{all}</header>
            {fault}
            {content}
        </section>
    }
    .into_any()
}
