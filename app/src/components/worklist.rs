//! Worklist of locks that need attention, worst first: one row group per lock, its second line
//! gives the reason.

use domain::escape::visible;
use domain::lock::Lock;
use domain::names::LockId;
use domain::reported::Reported;
use leptos::prelude::*;

use super::elapsed::Held;
use super::expiry_bar::ExpiryBar;
use super::resource_name::ResourceName;
use super::state_badge::StateBadge;
use crate::components::reactive::changing;
use crate::focus::keep_focus;
use crate::format;
use crate::links;
use crate::live::use_live;

/// How long a changed row is marked, in milliseconds.
const MARKED_MS: i64 = 2_000;

/// Rows keep their elements across readings: the key is the lock, its values are signals. While
/// pointer or focus is in the table no row moves, appears or disappears; the live bar counts
/// waiting changes.
#[component]
pub fn Worklist(
    #[prop(into)] locks: Signal<Vec<Lock>>,
    /// Shown instead of an empty list.
    #[prop(into)]
    empty: ViewFn,
) -> impl IntoView {
    let (pointed, focused) = (RwSignal::new(false), RwSignal::new(false));
    // Rows added after the first paint are marked.
    let settled = StoredValue::new(false);
    Effect::new(move |_| settled.set_value(true));
    let ids = held_back(locks, Signal::derive(move || pointed.get() || focused.get()));
    let is_empty = Memo::new(move |_| ids.with(Vec::is_empty));
    // A removed table sends no event when the pointer or focus leaves it, so the hold is ended here.
    Effect::new(move |_| {
        if is_empty.get() {
            pointed.set(false);
            focused.set(false);
        }
    });
    let table = move || {
        let in_order = move || {
            keep_focus();
            ids.get()
        };
        view! {
            <table
                class="worklist"
                on:pointerenter=move |_| pointed.set(true)
                on:pointerleave=move |_| pointed.set(false)
                on:focusin=move |_| focused.set(true)
                on:focusout=move |_| focused.set(false)
            >
                <caption class="sr">"Locks that need attention, worst first"</caption>
                <thead>
                    <tr>
                        <th scope="col" class="c-st">"state"</th>
                        <th scope="col" class="c-res">"resource and reason"</th>
                        <th scope="col" class="c-own">"held by"</th>
                        <th scope="col" class="c-held num">"held for"</th>
                        <th scope="col" class="c-rw">"time left"</th>
                        <th scope="col" class="c-w num">"waiters"</th>
                    </tr>
                </thead>
                <For
                    each=in_order
                    key=|id| id.clone()
                    children=move |id| row(locks, id, settled.get_value())
                />
            </table>
        }
        .into_any()
    };
    changing(move || if is_empty.get() { empty.run() } else { table() })
}

/// One row; its values change with each reading. A removed lock keeps its last values while rows are held back.
fn row(locks: Signal<Vec<Lock>>, id: LockId, came_late: bool) -> impl IntoView {
    let lock = Memo::new(move |before: Option<&Option<Lock>>| {
        let now = locks.with(|locks| locks.iter().find(|lock| lock.id == id).cloned());
        now.or_else(|| before.cloned().flatten())
    });
    let is_new = mark(lock, came_late);
    changing(move || lock.get().map(|lock| view! { <Row lock is_new/> }.into_any()))
}

/// The order on screen: as read, but frozen while `is_held`, until the operator applies the
/// changes.
fn held_back(locks: Signal<Vec<Lock>>, is_held: Signal<bool>) -> Memo<Vec<LockId>> {
    let live = use_live();
    let now =
        Memo::new(move |_| locks.with(|locks| locks.iter().map(|lock| lock.id.clone()).collect::<Vec<_>>()));
    let flushed = StoredValue::new(0);
    let shown = Memo::new(move |before: Option<&Vec<LockId>>| {
        let flushes = live.flushes();
        let is_flush = flushed.get_value() != flushes;
        flushed.set_value(flushes);
        match before {
            Some(before) if is_held.get() && !is_flush => before.clone(),
            _ => now.get(),
        }
    });
    Effect::new(move |_| live.hold_back(now.with(|now| shown.with(|shown| count_differences(shown, now)))));
    on_cleanup(move || live.hold_back(0));
    shown
}

/// Number of rows added, removed or moved.
fn count_differences(shown: &[LockId], now: &[LockId]) -> u32 {
    let longest = shown.len().max(now.len());
    let differ = (0..longest)
        .filter(|index| shown.get(*index) != now.get(*index))
        .count();
    u32::try_from(differ).unwrap_or(u32::MAX)
}

/// True for a moment after the row was added, or its state or owner changed. Never on the first
/// paint.
fn mark(lock: Memo<Option<Lock>>, came_late: bool) -> Signal<bool> {
    let live = use_live();
    let state_and_owner =
        Memo::new(move |_| lock.with(|lock| lock.as_ref().map(|lock| (lock.state, lock.owner_id.clone()))));
    let changed_at = RwSignal::new(None::<i64>);
    Effect::new(move |before: Option<()>| {
        let _ = state_and_owner.get();
        if before.is_some() || came_late {
            changed_at.set(untrack(move || live.now_ms()));
        }
    });
    let marked = move || {
        let at = changed_at.get()?;
        live.now_ms().map(|now| now - at < MARKED_MS)
    };
    Memo::new(move |_| marked().unwrap_or(false)).into()
}

#[component]
fn Row(lock: Lock, is_new: Signal<bool>) -> impl IntoView {
    let why = lock.cause().to_owned();
    let rel = links::needs_browser(&lock.id.resource.text()).then_some("external");
    let stale = if lock.is_stale() { "is-stale" } else { "" };
    view! {
        <tbody class=stale class:is-new=is_new>
            <tr class="row">
                <td class="c-st" rowspan="2"><StateBadge state=lock.state/></td>
                <td class="c-res">
                    <a class="row-link" href=links::lock(&lock) rel=rel>
                        <ResourceName name=lock.id.resource.text() cut=true/>
                    </a>
                </td>
                <td class="c-own">{owner(&lock)}</td>
                <td class="c-held num"><Held lock=lock.clone()/></td>
                <td class="c-rw"><ExpiryBar lock=lock.clone()/></td>
                <td class="c-w num">{waiters(&lock.waiter_count)}</td>
            </tr>
            <tr class="why">
                <td class="c-why" colspan="5">
                    <span class="at ink3">{lock.id.backend.to_string()}</span>
                    <bdi title=visible(&why).into_owned()>{format::prose(&why)}</bdi>
                </td>
            </tr>
        </tbody>
    }
    .into_any()
}

fn owner(lock: &Lock) -> AnyView {
    match &lock.owner_id {
        Reported::Value(owner) => {
            let name = visible(owner.as_str()).into_owned();
            let more = lock.owner_count.saturating_sub(1);
            let more =
                (more > 0).then(|| view! { <span class="ink3">{format!(" +{more}")}</span> }.into_any());
            // A truncated name loses its start, never its end.
            view! { <span class="cut" title=name.clone()><bdi dir="ltr">{name.clone()}{more}</bdi></span> }
                .into_any()
        }
        Reported::Unknown(why) => missing_value("unknown", why),
        Reported::NotApplicable(why) => missing_value("none", why),
    }
}

/// Number of waiters: muted at zero, blue above, "unknown" without data.
pub fn waiters(count: &Reported<u32>) -> AnyView {
    match count {
        Reported::Value(0) => view! { <span class="ink3">"0"</span> }.into_any(),
        Reported::Value(count) => {
            view! { <span class="waiting wn">{format::count(u64::from(*count))}</span> }.into_any()
        }
        Reported::Unknown(why) => missing_value("unknown", why),
        Reported::NotApplicable(why) => missing_value("none", why),
    }
}

fn missing_value(label: &'static str, why: &str) -> AnyView {
    view! { <span class="ink3" title=why.to_owned()>{label}</span> }.into_any()
}
