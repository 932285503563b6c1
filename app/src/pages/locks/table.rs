//! The table: sortable headers, visible rows, and the hold under the pointer.

use domain::format;
use domain::query::{Sort, SortKey};
use leptos::ev::{FocusEvent, PointerEvent};
use leptos::html::Tbody;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::row::LockRow;
use super::row_buffer::Listing;
use super::scroll::Scroll;
use super::url_state::Address;
use crate::components::reactive::changing;
use crate::components::settled::settled;
use crate::components::state_badge::Shape;
use crate::live::{Live, clock, use_live};

#[component]
pub fn Table(
    listing: RwSignal<Listing>,
    scroll: Scroll,
    total: Signal<u64>,
    address: Memo<Address>,
) -> impl IntoView {
    let rows = move || total.get() + 1;
    let from = Signal::derive(move || address.with(Address::from));
    let (tbody, hold) = (scroll.tbody, Hold::new(listing, scroll.tbody));
    view! {
        <table class="t locks" aria-label="locks" aria-rowcount=rows>
            <Head address/>
            <tbody
                node_ref=tbody
                on:pointerenter=move |event| hold.pointer(&event, true)
                on:pointerleave=move |event| hold.pointer(&event, false)
                on:focusin=move |event| hold.focus_in(&event, scroll)
                on:focusout=move |event| hold.focus_out(&event)
            >
                <Gap rows=scroll.above()/>
                <For each=move || scroll.drawn() key=|index| *index children=move |index| settled(view! { <LockRow listing index from/> })/>
                <Gap rows=scroll.below(listing)/>
            </tbody>
        </table>
    }
}

#[component]
fn Head(address: Memo<Address>) -> impl IntoView {
    view! {
        <thead>
            <tr aria-rowindex="1">
                <Sortable address key=SortKey::Resource class="c-res" label="resource"/>
                <th scope="col" class="c-b">"backend"</th>
                <th scope="col" class="c-o">"held by"</th>
                <Sortable address key=SortKey::Held class="c-h num" label="held for"/>
                <Sortable address key=SortKey::Remaining class="c-rw" label="time left"/>
                <Sortable address key=SortKey::Waiters class="c-w num" label="waiters"/>
                <th scope="col" class="c-t num">"token"</th>
                <Sortable address key=SortKey::State class="c-st" label="state"/>
            </tr>
        </thead>
    }
}

/// The first click sorts worst first, the second reverses.
#[component]
fn Sortable(address: Memo<Address>, key: SortKey, class: &'static str, label: &'static str) -> impl IntoView {
    let now = move || address.with(Address::sort);
    let worst_first = !matches!(key, SortKey::Resource | SortKey::Remaining);
    let next = move || {
        let now = now();
        let descending = if now.key == key {
            !now.descending
        } else {
            worst_first
        };
        let sort = Sort { key, descending };
        let wire = if sort == Sort::default() {
            String::new()
        } else {
            sort.to_query_value()
        };
        address.with(|address| address.with("sort", &wire).href())
    };
    let direction = move || (now().key == key).then(|| now().descending);
    let aria = move || direction().map(|descending| if descending { "descending" } else { "ascending" });
    let arrow = move || {
        direction()
            .map(|descending| view! { <Shape name=if descending { "down" } else { "up" }/> }.into_any())
    };
    view! { <th scope="col" class=class aria-sort=aria><a href=next data-noscroll="">{label}{changing(arrow)}</a></th> }
}

/// Placeholder for rows that are not drawn, with their height.
#[component]
fn Gap(#[prop(into)] rows: Signal<f64>) -> impl IntoView {
    let cell = NodeRef::<leptos::html::Td>::new();
    // Not as an attribute: the content security policy forbids inline styles in the HTML.
    Effect::new(move |_| {
        if let Some(cell) = cell.get() {
            let _ = web_sys::HtmlElement::style(&cell)
                .set_property("height", &format!("{}px", format::measure(rows.get())));
        }
    });
    view! { <tr class="gap" aria-hidden="true"><td node_ref=cell></td></tr> }
}

/// Whether the pointer or the focus is in the table.
#[derive(Clone, Copy)]
struct Hold {
    live: Live,
    listing: RwSignal<Listing>,
    tbody: NodeRef<Tbody>,
    pointed: StoredValue<bool>,
    focused: StoredValue<bool>,
}

impl Hold {
    fn new(listing: RwSignal<Listing>, tbody: NodeRef<Tbody>) -> Self {
        Self {
            // Taken here: event handlers run outside the context.
            live: use_live(),
            listing,
            tbody,
            pointed: StoredValue::new(false),
            focused: StoredValue::new(false),
        }
    }

    fn pointer(self, event: &PointerEvent, inside: bool) {
        // A touch does not hover and sends no leave event: it would hold the rows without end.
        if event.pointer_type() != "touch" {
            self.pointed.try_set_value(inside);
            self.announce();
        }
    }

    fn focus_in(self, event: &FocusEvent, scroll: Scroll) {
        self.focused.try_set_value(true);
        if let Some(index) = row_of(event.target()) {
            scroll.set_current(index);
        }
        self.announce();
    }

    fn focus_out(self, event: &FocusEvent) {
        let next = event
            .related_target()
            .and_then(|next| next.dyn_into::<web_sys::Node>().ok());
        let tbody = self.tbody.try_get_untracked().flatten();
        let inside = tbody.is_some_and(|tbody| tbody.contains(next.as_ref()));
        self.focused.try_set_value(inside);
        self.announce();
    }

    /// Applies the state of the hold. Uses `try_`, because events may arrive while the page is being disposed of.
    fn announce(self) {
        let held = self.pointed.try_get_value() == Some(true) || self.focused.try_get_value() == Some(true);
        self.listing
            .try_update(|listing| listing.hold(held, clock::now_ms()));
        if let Some(waiting) = self.listing.try_with_untracked(Listing::waiting) {
            self.live.hold_back(waiting);
        }
    }
}

/// Number of the row around an element, as numbered by [`LockRow`], from the first row of the
/// list on screen.
fn row_of(target: Option<web_sys::EventTarget>) -> Option<usize> {
    let element = target?.dyn_into::<web_sys::Element>().ok()?;
    element
        .closest("tr")
        .ok()??
        .get_attribute("data-row")?
        .parse()
        .ok()
}
