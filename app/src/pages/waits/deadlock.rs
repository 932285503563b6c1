//! One deadlock: its cycle, why each wait and each join is believed, and suggested releases.

use domain::escape::visible;
use domain::waits::page::{CycleHop, DeadlockView, JoinReason, SuggestedRelease, WaitsPage};
use leptos::prelude::*;

use crate::charts::wait_cycle::wait_cycle;
use crate::charts::wait_timeline::{timeline_note, wait_timeline};
use crate::components::copy_button::CopyButton;
use crate::components::lock_link::lock_link;
use crate::components::reactive::changing;
use crate::components::state_badge::Shape;
use crate::links;

/// `deadlock` has no times: parts that show times read them from the deadlock at index `at` of the page's data. `is_one_of_many`:
/// it has a title of its own.
pub fn deadlock_sections(
    at: usize,
    deadlock: &DeadlockView,
    page: Signal<WaitsPage>,
    is_one_of_many: bool,
) -> AnyView {
    let timed = move |draw: fn(&DeadlockView, i64) -> AnyView| {
        changing(move || page.with(|page| page.deadlocks.get(at).map(|deadlock| draw(deadlock, page.at))))
    };
    let id = format!("cycle-{at}");
    let labelled = id.clone();
    let title = if is_one_of_many {
        deadlock.title()
    } else {
        "Cycle".to_owned()
    };
    let text = visible(&deadlock.lines().join("\n")).replace("\\n", "\n");
    let note = match deadlock.releases.is_empty() {
        true => "an arrow points from a waiter to the owner it waits for",
        false => {
            "an arrow points from a waiter to the owner it waits for; numbers refer to the releases below"
        }
    };
    view! {
        <section class="sec" aria-labelledby=labelled>
            <header>
                <h2 id=id>{title}</h2>
                <span class="note">{note}</span>
                <span class="end"><CopyButton text=text label="Copy as text"/></span>
            </header>
            <p class="pad">{badge(deadlock)}</p>
            {timed(|deadlock, _| wait_cycle(deadlock))}
            {joins(deadlock)}
        </section>
        {releases(deadlock)}
        <section class="sec">
            <header><h2>"Cycle timeline"</h2><span class="note">{timed(|deadlock, _| timeline_note(deadlock).into_any())}</span></header>
            {timed(wait_timeline)}
        </section>
    }
    .into_any()
}

/// Certain or possible, as shape, label and hue.
pub fn badge(deadlock: &DeadlockView) -> AnyView {
    match &deadlock.doubt {
        None => view! { <span class="st critical"><Shape name="deadlock"/>"cycle"</span> }.into_any(),
        Some(doubt) => view! {
            <span class="st blind"><Shape name="unknown"/>"possible cycle"</span>" "
            <span class="ink2">{format!("{doubt}.")}</span>
        }
        .into_any(),
    }
}

/// The joins of different identities, by rule.
fn joins(deadlock: &DeadlockView) -> AnyView {
    let joined = deadlock
        .hops
        .iter()
        .filter_map(|hop| Some((hop, hop.joined.as_ref()?)));
    let rows: Vec<AnyView> = joined.map(|(hop, joined)| join_row(hop, joined)).collect();
    if rows.is_empty() {
        return ().into_any();
    }
    view! {
        <table class="t joins">
            <caption class="sr">"Why two identities are one owner"</caption>
            <thead><tr>
                <th scope="col">"owner"</th><th scope="col">"identities"</th><th scope="col">"joined by rule"</th>
            </tr></thead>
            <tbody>{rows}</tbody>
        </table>
    }
    .into_any()
}

fn join_row(hop: &CycleHop, joined: &JoinReason) -> AnyView {
    let identities: Vec<AnyView> = joined
        .identities
        .iter()
        .map(|identity| {
            let field = identity.field.as_ref().map(|field| format!("{field} "));
            let backend = format!(" on {}", identity.backend);
            view! {
                <div>{field}<bdi class="mono">{visible(&identity.owner).into_owned()}</bdi><span class="ink3">{backend}</span></div>
            }
            .into_any()
        })
        .collect();
    let rule = joined.rule.clone().unwrap_or_else(|| "several rules".to_owned());
    let values: Vec<String> = joined
        .values
        .iter()
        .map(|(name, value)| format!("{name} = {}", visible(value)))
        .collect();
    view! {
        <tr>
            <td><bdi>{visible(&hop.owner).into_owned()}</bdi></td>
            <td>{identities}</td>
            <td><bdi>{visible(&rule).into_owned()}</bdi><small class="ink2">{values.join(", ")}</small></td>
        </tr>
    }
    .into_any()
}

fn releases(deadlock: &DeadlockView) -> AnyView {
    if deadlock.releases.is_empty() {
        let why = match deadlock.is_partly_hidden {
            true => "A lock of the cycle is out of your scope, so the effect of a release is unknown.",
            false => return ().into_any(),
        };
        return view! { <section class="sec"><header><h2>"Suggested releases"</h2></header><p class="pad">{why}</p></section> }
            .into_any();
    }
    let rows: Vec<AnyView> = deadlock
        .releases
        .iter()
        .zip(1..)
        .map(|(release, place)| release_row(release, place, deadlock.blocked))
        .collect();
    view! {
        <section class="sec">
            <header><h2>"Suggested releases"</h2><span class="note">"most owners freed first"</span></header>
            <table class="t rk">
                <thead><tr>
                    <th scope="col">"release"</th><th scope="col" class="num">"owners freed"</th>
                    <th scope="col">"in this order"</th><th scope="col">"side effect"</th>
                    <th scope="col"><span class="sr">"action"</span></th>
                </tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </section>
    }
    .into_any()
}

fn release_row(release: &SuggestedRelease, place: usize, blocked: usize) -> AnyView {
    let name = release.lock.resource.text();
    let page = links::lock_path(&release.lock);
    let act = if release.ends_session {
        "End the session that holds "
    } else {
        "Release "
    };
    let holder = visible(&release.holder).into_owned();
    let backend = format!(" on {}", release.lock.backend);
    let rel = links::needs_browser(&name).then_some("external");
    view! {
        <tr>
            <td>
                <span class="no">{place}</span><span class="what">{act}{lock_link(&page, &name, "")}</span>
                <small class="ink2">"held by "<bdi>{holder}</bdi>{backend}</small>
            </td>
            <td class="num"><span class="free">{release.freed()}</span><span class="ink3">{format!(" of {blocked}")}</span></td>
            <td>{order(release)}</td>
            <td class="ink2">{release.side_effect.clone()}</td>
            <td class="num"><a class="btn s" href=links::unlock(&page) rel=rel>"Unlock\u{2026}"</a></td>
        </tr>
    }
    .into_any()
}

fn order(release: &SuggestedRelease) -> String {
    const NAMED: usize = 6;
    let names = |owners: &[String]| {
        let shown: Vec<String> = owners
            .iter()
            .take(NAMED)
            .map(|owner| visible(owner).into_owned())
            .collect();
        match owners.len().saturating_sub(NAMED) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    };
    match (release.at_once.is_empty(), release.then.is_empty()) {
        (true, _) => "none: each owner still waits for another lock".to_owned(),
        (false, true) => format!("{} at once", names(&release.at_once)),
        (false, false) => format!(
            "{} at once, then {}",
            names(&release.at_once),
            names(&release.then)
        ),
    }
}
