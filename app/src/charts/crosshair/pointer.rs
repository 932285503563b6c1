//! The selected place and the dragged span. Events may arrive after the plot was disposed of,
//! so signals are read and set with `try_`.

use std::sync::Arc;

use leptos::ev::{FocusEvent, MouseEvent, PointerEvent};
use leptos::html::Div;
use leptos::prelude::*;
use wasm_bindgen::JsCast;

use super::{Position, Reading, SpanUrl};

/// Shortest dragged span, in per cent: less is a click.
const DRAGGED_MIN: f64 = 1.0;

type Open = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Clone, Copy)]
pub(super) struct Pointer {
    pub(super) rows: Memo<Vec<Vec<Reading>>>,
    pub(super) place: RwSignal<Option<Position>>,
    /// Start and end of the drag, in per cent.
    pub(super) dragged: RwSignal<Option<(f64, f64)>>,
    /// The last press was by touch, which selects a place and opens no link.
    pub(super) is_touch: StoredValue<bool>,
    pub(super) area: NodeRef<Div>,
    pub(super) span: StoredValue<Option<SpanUrl>>,
    pub(super) open: StoredValue<Open>,
}

impl Pointer {
    /// Tracked.
    pub(super) fn reading(self) -> Option<Reading> {
        let (row, at) = self.place.get()?;
        self.rows.with(|rows| rows.get(row)?.get(at).cloned())
    }

    pub(super) fn row(self) -> usize {
        self.place.get().map_or(0, |(row, _)| row)
    }

    /// Places of all rows.
    pub(super) fn count(self) -> usize {
        self.rows.with(|rows| rows.iter().map(Vec::len).sum())
    }

    /// Number of the selected place; without a selection, of the last place of the first row.
    pub(super) fn number(self) -> usize {
        let place = self.place.get();
        self.rows.with(|rows| match place {
            Some((row, at)) => rows.iter().take(row).map(Vec::len).sum::<usize>() + at,
            None => rows.first().map_or(0, |row| row.len().saturating_sub(1)),
        })
    }

    pub(super) fn is_touched(self) -> bool {
        self.is_touch.try_get_value() == Some(true)
    }

    /// URL of the page with the time range of this place only.
    pub(super) fn narrowed(self, reading: &Reading) -> Option<String> {
        self.url(reading.at, reading.at + reading.width)
    }

    fn url(self, from: f64, until: f64) -> Option<String> {
        let span = self.span.try_get_value().flatten()?;
        Some(span(from.min(until), from.max(until)))
    }

    pub(super) fn clear(self) -> bool {
        self.place.try_set(None);
        self.dragged.try_set(None);
        true
    }

    fn open(self, href: &str) {
        if let Some(open) = self.open.try_get_value() {
            open(href);
        }
    }

    /// Ends the reading when the focus leaves the plot.
    pub(super) fn blurred(self, event: &FocusEvent) {
        let next = event
            .related_target()
            .and_then(|next| next.dyn_into::<web_sys::Node>().ok());
        let area = self.area.try_get_untracked().flatten();
        let is_inside = next.is_some() && area.is_some_and(|area| area.contains(next.as_ref()));
        if !is_inside {
            self.clear();
        }
    }

    pub(super) fn down(self, event: &PointerEvent) {
        if is_in(event.target(), ".reading") {
            return;
        }
        let is_touch = event.pointer_type() == "touch";
        self.is_touch.try_set_value(is_touch);
        let place = self.place_of(event);
        if is_touch {
            // With the focus on the plot, a later tap elsewhere blurs it and clears the selection.
            if let Some(area) = self
                .area
                .try_get_untracked()
                .flatten()
                .filter(|_| place.is_some())
            {
                let _ = area.focus();
            }
            self.place.try_set(place);
        } else if event.button() == 0 && link_of(event.target()).is_none() {
            let can_select = self.span.try_with_value(Option::is_some) == Some(true);
            let at = self.position(event).filter(|_| can_select).map(|(x, _)| x);
            self.dragged.try_set(at.map(|at| (at, at)));
            // The pointer may leave the plot during a drag.
            let plot = event
                .current_target()
                .and_then(|plot| plot.dyn_into::<web_sys::Element>().ok());
            if let Some(plot) = plot.filter(|_| at.is_some()) {
                let _ = plot.set_pointer_capture(event.pointer_id());
            }
        }
    }

    /// Keeps the focus on the plot after a tap: the mouse event that follows a tap would move it.
    pub(super) fn pressed(self, event: &MouseEvent) {
        if self.is_touched() {
            event.prevent_default();
        }
    }

    pub(super) fn moved(self, event: &PointerEvent) {
        if is_in(event.target(), ".reading") {
            return;
        }
        self.place.try_set(self.place_of(event));
        if event.pointer_type() == "touch" {
            return;
        }
        let from = self.dragged.try_get_untracked().flatten().map(|(from, _)| from);
        if let Some((from, (x, _))) = from.zip(self.position(event)) {
            self.dragged.try_set(Some((from, x.clamp(0.0, 100.0))));
        }
    }

    pub(super) fn up(self, event: &PointerEvent) {
        if event.pointer_type() == "touch" {
            return;
        }
        let dragged = self.dragged.try_get_untracked().flatten();
        let long = dragged.filter(|(from, until)| (until - from).abs() >= DRAGGED_MIN);
        match long {
            // `dragged` stays set: the click that follows resets it and opens no link.
            Some((from, until)) => {
                if let Some(href) = self.url(from, until) {
                    self.open(&href);
                }
            }
            None => {
                self.dragged.try_set(None);
            }
        }
    }

    pub(super) fn left(self, event: &PointerEvent) {
        if event.pointer_type() != "touch" {
            self.clear();
        }
    }

    pub(super) fn clicked(self, event: &MouseEvent) {
        let was_dragged = self.dragged.try_get_untracked().flatten().is_some();
        self.dragged.try_set(None);
        if was_dragged || event.default_prevented() {
            return;
        }
        if let Some(link) = link_of(event.target()) {
            // The router follows links of HTML only.
            let is_ours = link.namespace_uri().is_some_and(|uri| uri.ends_with("svg"))
                && link.get_attribute("rel").is_none();
            let href = link.get_attribute("href").filter(|_| is_ours && is_plain(event));
            if let Some(href) = href {
                event.prevent_default();
                self.open(&href);
            }
            return;
        }
        if self.is_touched() {
            return;
        }
        let place = self.place.try_get_untracked().flatten();
        let href = place.and_then(|(row, at)| {
            self.rows
                .try_with_untracked(|rows| rows.get(row)?.get(at)?.href.clone())
                .flatten()
        });
        match href {
            Some(href) if is_plain(event) => self.open(&href),
            Some(href) => {
                let _ = window().open_with_url_and_target(&href, "_blank");
            }
            None => {}
        }
    }

    /// Moves the place by rows and places.
    pub(super) fn step(self, down: isize, right: isize) -> bool {
        self.dragged.try_set(None);
        let place = self.place.try_get_untracked().flatten();
        let next = self.rows.try_with_untracked(|rows| {
            let (row, at) = place.unwrap_or((0, rows.first().map_or(0, Vec::len)));
            let row = row.saturating_add_signed(down).min(rows.len().checked_sub(1)?);
            let last = rows.get(row)?.len().checked_sub(1)?;
            // Without a selection, any key selects the last place.
            let right = if place.is_none() && right > 0 { 0 } else { right };
            Some((row, at.saturating_add_signed(right).min(last)))
        });
        self.place.try_set(next.flatten());
        true
    }

    /// Extends the selected span by one place.
    pub(super) fn extend(self, right: isize) -> bool {
        let before = self.read_extent();
        let anchor = self.dragged.try_get_untracked().flatten().map(|(from, _)| from);
        self.step(0, right);
        let Some(((from, until), now)) = before.or(self.read_extent()).zip(self.read_extent()) else {
            return true;
        };
        let anchor = anchor.unwrap_or(if right > 0 { from } else { until });
        let end = if right > 0 { now.1 } else { now.0 };
        if self.span.try_with_value(Option::is_some) == Some(true) {
            self.dragged.try_set(Some((anchor, end)));
        }
        true
    }

    fn read_extent(self) -> Option<(f64, f64)> {
        let (row, at) = self.place.try_get_untracked().flatten()?;
        self.rows
            .try_with_untracked(|rows| {
                let reading = rows.get(row)?.get(at)?;
                Some((reading.at, reading.at + reading.width))
            })
            .flatten()
    }

    /// Opens the selected span, or else the selected place.
    pub(super) fn enter(self) -> bool {
        let span = self.dragged.try_get_untracked().flatten();
        let place = self.place.try_get_untracked().flatten();
        let of_place = || {
            let (row, at) = place?;
            self.rows
                .try_with_untracked(|rows| rows.get(row)?.get(at)?.href.clone())
                .flatten()
        };
        let href = match span {
            Some((from, until)) => self.url(from, until),
            None => of_place(),
        };
        self.dragged.try_set(None);
        if let Some(href) = &href {
            self.open(href);
        }
        href.is_some()
    }

    /// Position within the plot's area, in per cent.
    fn position(self, event: &PointerEvent) -> Option<(f64, f64)> {
        let area = self.area.try_get_untracked().flatten()?;
        let rect = area.get_bounding_client_rect();
        let part = |at: f64, from: f64, length: f64| (length > 0.0).then(|| (at - from) / length * 100.0);
        let (x, y) = (f64::from(event.client_x()), f64::from(event.client_y()));
        Some((
            part(x, rect.left(), rect.width())?,
            part(y, rect.top(), rect.height())?,
        ))
    }

    fn place_of(self, event: &PointerEvent) -> Option<Position> {
        let (x, y) = self.position(event)?;
        self.rows
            .try_with_untracked(|rows| place_at(rows, x, y))
            .flatten()
    }
}

/// The place that contains a position, or the nearest one of its row; `None` outside.
fn place_at(rows: &[Vec<Reading>], x: f64, y: f64) -> Option<Position> {
    const MARGIN: f64 = 1.0;
    let is_inside = |at: f64| (-MARGIN..=100.0 + MARGIN).contains(&at);
    if !is_inside(x) || !is_inside(y) {
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a number of rows"
    )]
    let row = (y.clamp(0.0, 99.99) / 100.0 * rows.len() as f64) as usize;
    let places = rows.get(row)?;
    let distance = |reading: &Reading| (reading.at - x).max(x - reading.at - reading.width).max(0.0);
    let nearest = places
        .iter()
        .enumerate()
        .min_by(|(_, one), (_, other)| distance(one).total_cmp(&distance(other)))?;
    Some((row, nearest.0))
}

/// The primary button without a modifier that opens another tab.
fn is_plain(event: &MouseEvent) -> bool {
    event.button() == 0 && !event.ctrl_key() && !event.meta_key() && !event.shift_key()
}

fn is_in(target: Option<web_sys::EventTarget>, selector: &str) -> bool {
    let element = target.and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    element.is_some_and(|element| element.closest(selector).is_ok_and(|found| found.is_some()))
}

fn link_of(target: Option<web_sys::EventTarget>) -> Option<web_sys::Element> {
    let element = target?.dyn_into::<web_sys::Element>().ok()?;
    element.closest("a").ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_under_the_pointer_is_the_nearest_of_its_row() {
        // Two rows of three places, with a gap between the second and the third.
        let reading = |at: f64| Reading {
            at,
            width: 10.0,
            ..Reading::default()
        };
        let rows = vec![
            vec![reading(0.0), reading(10.0), reading(80.0)],
            vec![reading(0.0)],
        ];
        let at = |x, y| place_at(&rows, x, y);
        assert_eq!(
            [at(5.0, 10.0), at(15.0, 49.0), at(40.0, 0.0)],
            [Some((0, 0)), Some((0, 1)), Some((0, 1))]
        );
        assert_eq!(
            [at(70.0, 0.0), at(99.0, 100.0), at(50.0, 120.0)],
            [Some((0, 2)), Some((1, 0)), None]
        );
        assert_eq!(place_at(&[], 50.0, 50.0), None);
    }
}
