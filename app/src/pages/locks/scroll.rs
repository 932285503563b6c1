//! Scrolling and row focus in the browser: measures, draws visible rows, moves the focus.

use domain::limits::PAGE_ROWS_MAX;
use leptos::ev;
use leptos::html::Tbody;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::row_buffer::Listing;
use super::virtual_window::Window;
use crate::focus::focus;
use crate::keyboard_shortcuts;

/// Rows per fetch while scrolling.
pub const PORTION: u32 = 250;
const _: () = assert!(PORTION <= PAGE_ROWS_MAX);

/// Height of the sticky header and footer, in pixels: rows under them are not visible.
const HEAD_PX: f64 = 32.0;
const FOOT_PX: f64 = 72.0;

#[derive(Clone, Copy)]
pub struct Scroll {
    pub tbody: NodeRef<Tbody>,
    window: RwSignal<Window>,
    row_height: RwSignal<f64>,
    /// The row that `j` and `k` start from.
    current: RwSignal<Option<usize>>,
}

impl Scroll {
    pub fn new(rows: usize) -> Self {
        Self {
            tbody: NodeRef::new(),
            window: RwSignal::new(Window::all(rows)),
            row_height: RwSignal::new(32.0),
            current: RwSignal::new(None),
        }
    }

    pub fn drawn(self) -> std::ops::Range<usize> {
        self.window.with(|window| window.drawn.clone())
    }

    pub fn seen(self) -> std::ops::Range<usize> {
        self.window.with(|window| window.seen.clone())
    }

    pub fn window(self) -> Window {
        self.window.get_untracked()
    }

    /// Height of the rows above those drawn, in pixels.
    pub fn above(self) -> Signal<f64> {
        Signal::derive(move || height(self.drawn().start, self.row_height.get()))
    }

    /// Height of the rows below those drawn, in pixels.
    pub fn below(self, listing: RwSignal<Listing>) -> Signal<f64> {
        Signal::derive(move || {
            let rows = listing.with(Listing::len).saturating_sub(self.drawn().end);
            height(rows, self.row_height.get())
        })
    }

    pub fn set_current(self, row: usize) {
        self.current.try_set(Some(row));
    }

    /// Measures on scrolling and resizing, and moves on `j` and `k`. In the browser only.
    pub fn watch(self, listing: RwSignal<Listing>) {
        // Again when the table appears, and whenever rows are added or removed.
        let rows = Memo::new(move |_| listing.with(Listing::len));
        Effect::new(move |_| {
            rows.track();
            self.tbody.track();
            self.measure(listing);
        });
        Effect::new(move |_| {
            let scrolled = window_event_listener(ev::scroll, move |_| self.measure(listing));
            let resized = window_event_listener(ev::resize, move |_| self.measure(listing));
            let pressed = window_event_listener(ev::keydown, move |event| {
                let step = match keyboard_shortcuts::plain_key(&event).as_deref() {
                    Some("j") => 1,
                    Some("k") => -1,
                    _ => return,
                };
                event.prevent_default();
                self.step(listing, step);
            });
            on_cleanup(move || {
                scrolled.remove();
                resized.remove();
                pressed.remove();
            });
        });
    }

    /// Draws the visible rows.
    pub fn measure(self, listing: RwSignal<Listing>) {
        let Some(tbody) = self.tbody.try_get_untracked().flatten() else {
            return;
        };
        let Some(rows) = listing.try_with_untracked(Listing::len) else {
            return;
        };
        if let Ok(Some(row)) = tbody.query_selector("tr[data-row]") {
            let height = row.get_bounding_client_rect().height();
            if height > 0.0 && (height - self.row_height.get_untracked()).abs() > 0.5 {
                self.row_height.set(height);
            }
        }
        let top = tbody.get_bounding_client_rect().top() - HEAD_PX;
        let window = Window::at(
            top,
            view_height() - HEAD_PX - FOOT_PX,
            self.row_height.get_untracked(),
            rows,
        );
        if self.window.with_untracked(|now| *now != window) {
            self.window.set(window);
        }
    }

    fn step(self, listing: RwSignal<Listing>, step: isize) {
        let rows = listing.with_untracked(Listing::len);
        if rows == 0 {
            return;
        }
        let start = self.current.get_untracked();
        let row = start
            .map_or(self.window().seen.start, |row| row.saturating_add_signed(step))
            .min(rows - 1);
        self.current.set(Some(row));
        self.bring_into_sight(row);
        self.measure(listing);
        // After the row was drawn.
        request_animation_frame(move || focus_row(self.tbody, row));
    }

    fn bring_into_sight(self, row: usize) {
        let Some(tbody) = self.tbody.get_untracked() else {
            return;
        };
        let height = self.row_height.get_untracked();
        let top = tbody.get_bounding_client_rect().top() + height_of(row) * height;
        let (upper, lower) = (HEAD_PX, view_height() - FOOT_PX);
        if top < upper {
            window().scroll_by_with_x_and_y(0.0, top - upper);
        } else if top + height > lower {
            window().scroll_by_with_x_and_y(0.0, top + height - lower);
        }
    }
}

fn view_height() -> f64 {
    window()
        .inner_height()
        .ok()
        .and_then(|height| height.as_f64())
        .unwrap_or(800.0)
}

#[expect(clippy::cast_precision_loss, reason = "rows on one page stay far below 2^53")]
fn height_of(rows: usize) -> f64 {
    rows as f64
}

fn height(rows: usize, row_height: f64) -> f64 {
    height_of(rows) * row_height
}

fn focus_row(tbody: NodeRef<Tbody>, row: usize) {
    let Some(tbody) = tbody.try_get_untracked().flatten() else {
        return;
    };
    let link = tbody
        .query_selector(&format!("tr[data-row=\"{row}\"] a"))
        .ok()
        .flatten();
    if let Some(link) = link.and_then(|link| link.dyn_into::<web_sys::Element>().ok()) {
        focus(&link);
    }
}
