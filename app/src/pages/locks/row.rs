//! One row: a lock on one line.

use std::sync::Arc;

use domain::escape::visible;
use domain::lock::Lock;
use domain::name_tree::shared_len;
use domain::reported::Reported;
use domain::state::LockState;
use leptos::prelude::*;

use super::row_buffer::{DisplayedRow, Listing};
use crate::components::elapsed::Held;
use crate::components::expiry_bar::ExpiryBar;
use crate::components::reactive::changing;
use crate::components::reported_value::ReportedValue;
use crate::components::resource_name::ResourceName;
use crate::components::state_badge::StateBadge;
use crate::format;
use crate::links;
use crate::live::use_live;

/// How long a changed row is marked, in milliseconds.
const MARKED_MS: i64 = 2_000;

/// A row with the context of the row above.
#[derive(Debug, Clone, PartialEq)]
struct Placed {
    row: DisplayedRow,
    /// Number of leading bytes of the name that the row above shares.
    shared: usize,
}

fn placed(listing: &Listing, index: usize) -> Option<Placed> {
    let row = listing.row(index)?.clone();
    let name = row.lock.id.resource.text();
    let above = index.checked_sub(1).and_then(|above| listing.row(above));
    let shared = above.map_or(0, |above| shared_len(&above.lock.id.resource.text(), &name));
    // A name equal to the one above (on another backend) is not dimmed.
    Some(Placed {
        row,
        shared: if shared < name.len() { shared } else { 0 },
    })
}

#[component]
pub fn LockRow(
    listing: RwSignal<Listing>,
    index: usize,
    /// Number of the list's first row, for screen readers.
    #[prop(into)]
    from: Signal<u64>,
) -> impl IntoView {
    let live = use_live();
    let placed = Memo::new(move |_| listing.with(|listing| placed(listing, index)));
    // Only a row with a recent change reads the ticker, so that the others are not computed at each tick.
    let is_marked = move |row: &DisplayedRow| {
        let changed_at = row.changed_at;
        changed_at.is_some_and(|at| live.now_ms().is_some_and(|now| now - at < MARKED_MS))
    };
    let class = move || {
        placed.with(|placed| {
            let Some(Placed { row, .. }) = placed else {
                return String::new();
            };
            format!(
                "{}{}",
                row_class(row),
                if is_marked(row) { " is-new" } else { "" }
            )
        })
    };
    view! {
        <tr class=class aria-rowindex=move || aria_row(from.get(), index) data-row=index>
            {changing(move || placed.get().map(cells))}
        </tr>
    }
    .into_any()
}

/// Row number for `aria-rowindex`: the header is row 1.
fn aria_row(from: u64, index: usize) -> u64 {
    from + u64::try_from(index).unwrap_or(0) + 2
}

/// The backend's name of the source.
fn source_of(lock: &Lock) -> String {
    format!("{}, {}", lock.kind.as_str(), lock.id.source)
}

fn row_class(row: &DisplayedRow) -> &'static str {
    match (row.gone, row.lock.state) {
        (true, _) => "is-stale is-gone",
        (false, LockState::Stale) => "is-stale",
        (false, LockState::Unknown) => "is-blind",
        (false, _) => "",
    }
}

fn cells(placed: Placed) -> AnyView {
    let Placed { row, shared } = placed;
    let lock = row.lock;
    let name = lock.id.resource.text();
    let rel = links::needs_browser(&name).then_some("external");
    let backend = lock.id.backend.to_string();
    let source = source_of(&lock);
    let state = lock.state;
    let note = (state == LockState::Stale).then(|| format::age(lock.age_ms));
    let why = if row.gone {
        GONE.to_owned()
    } else {
        visible(lock.cause()).into_owned()
    };
    let badge = if row.gone {
        view! { <span class="st blind quiet" title=why>"not listed now"</span> }.into_any()
    } else {
        view! { <StateBadge state note=note.unwrap_or_default() why/> }.into_any()
    };
    let token = lock.fencing_token.clone().map(|token| token.to_string());
    view! {
        <td class="c-res"><a href=links::lock(&lock) rel=rel><ResourceName name shared cut=true/></a></td>
        <td class="c-b ink2" title=source>{backend}</td>
        <td class="c-o">{owner(&lock)}</td>
        <td class="c-h num"><Held lock=lock.clone()/></td>
        <td class="c-rw"><ExpiryBar lock=lock.clone()/></td>
        <td class="c-w num">{waiters(&lock.waiter_count)}</td>
        <td class="c-t num"><ReportedValue value=token/></td>
        <td class="c-st">{badge}</td>
    }
    .into_any()
}

const GONE: &str = "Released, or moved in the list; the row disappears when the pointer leaves the table";

fn owner(lock: &Arc<Lock>) -> AnyView {
    let others = (lock.owner_count > 1 && lock.owner_id.is_known())
        .then(|| view! { <small class="ink3">{format!(" +{}", lock.owner_count - 1)}</small> }.into_any());
    let owner = lock
        .owner_id
        .clone()
        .map(|owner| visible(owner.as_str()).into_owned());
    let title = owner.known().filter(|owner| owner.len() > 14).cloned();
    view! { <span class="cut" title=title><bdi dir="ltr"><ReportedValue value=owner/>{others}</bdi></span> }
        .into_any()
}

fn waiters(count: &Reported<u32>) -> AnyView {
    match count {
        Reported::Value(0) => view! { <span class="ink3">"0"</span> }.into_any(),
        Reported::Value(count) => {
            view! { <span class="waiting wn">{format::count(u64::from(*count))}</span> }.into_any()
        }
        unknown => view! { <ReportedValue value=unknown.clone().map(|count| count.to_string())/> }.into_any(),
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests;
