//! Values under the pointer of a chart: mouse, touch and keyboard, in the browser only.
//!
//! A chart provides its readings: rows of places, each with the values at that place. The plot
//! and the selected place stay in the document while the drawing inside changes. With [`Plot`]'s
//! `span`, dragging over a span opens its URL, which limits the page to that time range.

mod pointer;

use std::sync::Arc;

use leptos::ev::KeyboardEvent;
use leptos::html::Div;
use leptos::prelude::*;
use leptos_router::NavigateOptions;
use leptos_router::hooks::use_navigate;

use super::svg::percent;
use crate::components::reactive::changing;
use crate::live::use_live;
use pointer::Pointer;

/// The values of a chart at one place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// Left edge and width, in per cent of the chart.
    pub at: f64,
    pub width: f64,
    /// The place in words: `02:10 to 02:20`.
    pub title: String,
    /// CSS class of a hue, and the value in words.
    pub values: Vec<(&'static str, String)>,
    /// The locks behind it.
    pub href: Option<String>,
}

impl Reading {
    fn text(&self) -> String {
        let values: Vec<&str> = self.values.iter().map(|(_, value)| value.as_str()).collect();
        format!("{}: {}", self.title, values.join(", "))
    }
}

/// Rows of places from left to right. Most charts have one row.
pub type Readings = Arc<dyn Fn() -> Vec<Vec<Reading>> + Send + Sync>;

/// URL of a part of the chart, from and until in per cent.
pub type SpanUrl = Arc<dyn Fn(f64, f64) -> String + Send + Sync>;

/// Row and place in the row.
type Position = (usize, usize);

/// A chart whose values can be read.
#[component]
pub fn Plot(
    /// CSS class of the drawing's container.
    class: &'static str,
    /// Accessible name: the measured quantity.
    #[prop(into)]
    label: Signal<String>,
    readings: Readings,
    /// `None`: no span can be selected.
    #[prop(optional)]
    span: Option<SpanUrl>,
    children: Children,
) -> impl IntoView {
    let navigate = use_navigate();
    let open = Arc::new(move |href: &str| {
        let options = NavigateOptions {
            scroll: false,
            ..NavigateOptions::default()
        };
        navigate(href, options);
    });
    let pointer = Pointer {
        rows: Memo::new(move |_| readings()),
        place: RwSignal::new(None),
        dragged: RwSignal::new(None),
        is_touch: StoredValue::new(false),
        area: NodeRef::<Div>::new(),
        span: StoredValue::new(span),
        open: StoredValue::new(open),
    };
    view! {
        <div
            class=format!("plot {class}")
            on:pointerdown=move |event| pointer.down(&event)
            on:mousedown=move |event| pointer.pressed(&event)
            on:pointermove=move |event| pointer.moved(&event)
            on:pointerup=move |event| pointer.up(&event)
            on:pointerleave=move |event| pointer.left(&event)
            on:click=move |event| pointer.clicked(&event)
        >
            {children()}
            {cross(pointer, label)}
        </div>
    }
    .into_any()
}

/// A slider for the keyboard and for screen readers, above the drawing. Without a script it is
/// an empty element.
fn cross(pointer: Pointer, label: Signal<String>) -> AnyView {
    let live = use_live();
    let awake = move || live.is_awake();
    let reading = Memo::new(move |_| pointer.reading());
    let now = move || awake().then(|| pointer.number().to_string());
    let most = move || awake().then(|| pointer.count().saturating_sub(1).to_string());
    let text = move || {
        awake().then(|| {
            reading.with(|reading| {
                let text = reading.as_ref().map(Reading::text);
                text.unwrap_or_else(|| "use the arrow keys to read the values".to_owned())
            })
        })
    };
    view! {
        <div
            class="crosshair"
            node_ref=pointer.area
            role=move || awake().then_some("slider")
            tabindex=move || awake().then_some("0")
            aria-label=move || awake().then(|| label.get())
            aria-valuemin=move || awake().then_some("0")
            aria-valuemax=most
            aria-valuenow=now
            aria-valuetext=text
            on:keydown=move |event| key(pointer, &event)
            on:focusout=move |event| pointer.blurred(&event)
        >
            {changing(move || pointer.dragged.get().map(selection))}
            {changing(move || {
                let (row, rows) = (pointer.row(), pointer.rows.with(Vec::len));
                reading.get().map(|reading| reading_view(reading, row, rows, pointer))
            })}
        </div>
    }
    .into_any()
}

fn selection((from, until): (f64, f64)) -> AnyView {
    let (from, until) = (from.min(until), from.max(until));
    view! {
        <svg class="cross picked" aria-hidden="true" width="100%" height="100%">
            <rect x=percent(from) width=percent(until - from) height="100%"></rect>
        </svg>
    }
    .into_any()
}

/// The place and its values. The links are for touch and the keyboard: a mouse clicks the place.
fn reading_view(reading: Reading, row: usize, rows: usize, pointer: Pointer) -> AnyView {
    let height = 100.0 / rows.max(1) as f64;
    let narrow = pointer.narrowed(&reading);
    let Reading {
        at,
        width,
        title,
        values,
        href,
    } = reading;
    let is_right = at > 50.0;
    let edge = if is_right { 100.0 - at } else { at + width };
    let edge = percent(edge.clamp(0.0, 100.0));
    let (left, right) = if is_right {
        (None, Some(edge))
    } else {
        (Some(edge), None)
    };
    let values: Vec<AnyView> = values
        .into_iter()
        .map(|(hue, value)| view! { <span class=hue>{value}</span> }.into_any())
        .collect();
    let links = [(href, "Open"), (narrow, "Only this span")].map(|(href, text)| {
        href.map(|href| {
            view! { <a class="link" href=href tabindex="-1" data-noscroll="">{text}</a> }.into_any()
        })
    });
    let top = percent(row as f64 * height);
    // The values are above or below their row. With a single row they are at its top.
    let (above, below) = match rows {
        ..=1 => (None, Some("0".to_owned())),
        _ if row * 2 < rows => (None, Some(percent((row + 1) as f64 * height))),
        _ => (
            Some(percent((rows - row) as f64 * height)),
            Some("auto".to_owned()),
        ),
    };
    view! {
        <svg class="cross" aria-hidden="true" width="100%" height="100%">
            <rect x=percent(at) width=percent(width) y=top height=percent(height)></rect>
        </svg>
        <div class="reading" class:touched=pointer.is_touched() style:left=left style:right=right style:top=below style:bottom=above>
            <b>{title}</b>
            {values}
            <span class="go">{links.into_iter().flatten().collect::<Vec<_>>()}</span>
        </div>
    }
    .into_any()
}

fn key(pointer: Pointer, event: &KeyboardEvent) {
    if event.ctrl_key() || event.alt_key() || event.meta_key() {
        return;
    }
    let handled = match (event.key().as_str(), event.shift_key()) {
        ("ArrowRight", false) => pointer.step(0, 1),
        ("ArrowLeft", false) => pointer.step(0, -1),
        ("ArrowDown", false) => pointer.step(1, 0),
        ("ArrowUp", false) => pointer.step(-1, 0),
        ("ArrowRight", true) => pointer.extend(1),
        ("ArrowLeft", true) => pointer.extend(-1),
        ("Home", _) => pointer.step(0, isize::MIN),
        ("End", _) => pointer.step(0, isize::MAX),
        ("Enter", _) => pointer.enter(),
        ("Escape", _) => pointer.clear(),
        _ => false,
    };
    if handled {
        event.prevent_default();
        event.stop_propagation();
    }
}
