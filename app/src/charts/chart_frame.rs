//! Frame of a chart: title, legend, and a table of the same numbers for screen readers.

use leptos::prelude::*;

use super::simulated_mark::SimulatedMark;
use crate::components::state_badge::Shape;

/// A chart as a section of a page.
#[component]
pub fn ChartFrame(
    /// Unique on the page.
    id: &'static str,
    #[prop(into)] title: Signal<String>,
    /// How to read the chart; small text after the title.
    #[prop(into)]
    note: Signal<String>,
    /// Links at the end of the title's line.
    #[prop(optional)]
    end: Option<AnyView>,
    children: Children,
) -> impl IntoView {
    let head_id = format!("{id}-head");
    let labelled = head_id.clone();
    view! {
        <section class="sec chart" id=id aria-labelledby=labelled>
            <header>
                <h2 id=head_id>{move || title.get()}</h2>
                <SimulatedMark/>
                <span class="note">{move || note.get()}</span>
                {end.map(|end| view! { <span class="end">{end}</span> }.into_any())}
            </header>
            {children()}
        </section>
    }
    .into_any()
}

/// Placeholder of a section whose data could not be read in time.
#[component]
pub fn Unread(
    id: &'static str,
    title: &'static str,
    /// The data that is unknown: the subject of the sentence.
    #[prop(default = "history")]
    what: &'static str,
) -> impl IntoView {
    view! {
        <ChartFrame id title=title.to_owned() note=String::new()>
            <p class="pad">"Unknown: "{what}" could not be read in time. The next refresh tries again."</p>
        </ChartFrame>
    }
    .into_any()
}

/// One entry of a legend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegendEntry {
    pub swatch: Swatch,
    pub label: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swatch {
    /// Name in the sprite, without `s-`; CSS class of its hue.
    Shape(&'static str, &'static str),
    /// CSS class of a filled area.
    Area(&'static str),
    /// CSS class of a vertical line.
    Rule(&'static str),
    /// CSS class of a horizontal line.
    Line(&'static str),
}

impl LegendEntry {
    pub fn new(swatch: Swatch, label: impl Into<String>) -> Self {
        let label = label.into();
        Self { swatch, label }
    }
}

/// The entries whose marks are drawn.
pub fn drawn_entries<const N: usize>(entries: [(bool, Swatch, &str); N]) -> Vec<LegendEntry> {
    let drawn = entries.into_iter().filter(|(is_drawn, ..)| *is_drawn);
    drawn
        .map(|(_, swatch, label)| LegendEntry::new(swatch, label))
        .collect()
}

pub fn legend(entries: Vec<LegendEntry>) -> AnyView {
    if entries.is_empty() {
        return ().into_any();
    }
    let entries: Vec<AnyView> = entries
        .into_iter()
        .map(|LegendEntry { swatch, label }| view! { <span>{drawn_swatch(swatch)}{label}</span> }.into_any())
        .collect();
    view! { <p class="legend keys">{entries}</p> }.into_any()
}

fn drawn_swatch(swatch: Swatch) -> AnyView {
    let mark = match swatch {
        Swatch::Shape(name, "") => return view! { <Shape name/> }.into_any(),
        Swatch::Shape(name, hue) => return view! { <span class=hue><Shape name/></span> }.into_any(),
        Swatch::Area(class) => {
            view! { <rect class=class x=".5" y=".5" width="15" height="11"></rect> }.into_any()
        }
        Swatch::Rule(class) => view! { <path class=class d="M8 0v12"></path> }.into_any(),
        Swatch::Line(class) => view! { <path class=class d="M0 6h16"></path> }.into_any(),
    };
    view! { <svg viewBox="0 0 16 12" aria-hidden="true">{mark}</svg> }.into_any()
}

/// The numbers of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// For screen readers: the same numbers.
pub fn data_table(table: Table) -> AnyView {
    let Table { caption, head, rows } = table;
    let head: Vec<AnyView> = head
        .into_iter()
        .map(|heading| view! { <th scope="col">{heading}</th> }.into_any())
        .collect();
    let row = |cells: Vec<String>| {
        let cells: Vec<AnyView> = cells
            .into_iter()
            .map(|cell| view! { <td>{cell}</td> }.into_any())
            .collect();
        view! { <tr>{cells}</tr> }.into_any()
    };
    let rows: Vec<AnyView> = rows.into_iter().map(row).collect();
    view! {
        <div class="sr">
            <table>
                <caption>{caption}</caption>
                <thead><tr>{head}</tr></thead>
                <tbody>{rows}</tbody>
            </table>
        </div>
    }
    .into_any()
}
