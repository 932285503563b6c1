//! Heatmap of prefixes over time: one row per prefix, darkness by wait time, unknown cells
//! hatched.

use domain::escape::visible;
use leptos::prelude::*;

use super::chart_frame::Table;
use super::crosshair::Reading;
use super::svg::{linked_untabbed, percent};

/// One cell and its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cell {
    /// 0 to 5; `None`: unknown.
    pub heat: Option<usize>,
    /// Wait time, as in the table.
    pub text: String,
    /// Link to the cell's details; `None` without any.
    pub href: Option<String>,
    pub is_selected: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatmapRow {
    pub name: String,
    /// Small text after the name.
    pub of: String,
    /// Link of the name.
    pub href: Option<String>,
    pub cells: Vec<Cell>,
    /// `4 h 12 m`, or `unknown`.
    pub total: String,
    pub is_known: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    pub title: String,
    /// Interval of each column: `02:40 to 02:50`.
    pub spans: Vec<String>,
    /// Position in per cent and label.
    pub ticks: Vec<(f64, String)>,
    pub rows: Vec<HeatmapRow>,
}

impl HeatMap {
    /// Head and rows; [`Self::axis`] is below them.
    pub fn rows(&self) -> AnyView {
        let rows: Vec<AnyView> = self.rows.iter().map(|row| self.row(row)).collect();
        view! { {rows} }.into_any()
    }

    pub fn head() -> AnyView {
        view! {
            <div class="hm hh small ink3" aria-hidden="true">
                <span>"prefix"</span>
                <span></span>
                <span class="num">"waited"</span>
            </div>
        }
        .into_any()
    }

    fn row(&self, row: &HeatmapRow) -> AnyView {
        let name = visible(&row.name).into_owned();
        let name = view! { <span class="res cut"><bdi>{name}</bdi></span> };
        let name = match row.href.clone() {
            Some(href) => view! { <a href=href data-noscroll="">{name}</a> }.into_any(),
            None => view! { <span>{name}</span> }.into_any(),
        };
        let label = format!("{}: {} waited", visible(&row.name), row.total);
        let class = if row.is_known { "num" } else { "num ink3" };
        let width = 100.0 / self.spans.len().max(1) as f64;
        let cells: Vec<AnyView> = row
            .cells
            .iter()
            .enumerate()
            .map(|(place, cell)| self.cell(cell, place, width))
            .collect();
        view! {
            <div class="hm">
                <span class="hn">{name}<small class="ink3">{row.of.clone()}</small></span>
                <svg class="ch" width="100%" height="28" role="group" aria-label=label>{cells}</svg>
                <span class=class>{row.total.clone()}</span>
            </div>
        }
        .into_any()
    }

    fn cell(&self, cell: &Cell, place: usize, width: f64) -> AnyView {
        let title = self.text(cell, place);
        let class = match (cell.heat, cell.is_selected) {
            (None, _) => "hx".to_owned(),
            (Some(heat), false) => format!("h{}", heat.min(5)),
            (Some(heat), true) => format!("h{} on", heat.min(5)),
        };
        let mark = view! {
            <rect class=class x=percent(place as f64 * width) y="1" width=percent(width) height="26">
                <title>{title.clone()}</title>
            </rect>
        };
        linked_untabbed(cell.href.clone(), &title, mark.into_any())
    }

    fn text(&self, cell: &Cell, place: usize) -> String {
        format!(
            "{}: {}",
            self.spans.get(place).map_or("", String::as_str),
            cell.text
        )
    }

    pub fn axis(&self) -> AnyView {
        let label = |(at, text): &(f64, String)| {
            let anchor = if *at > 95.0 { "end" } else { "start" };
            view! { <text x=percent(*at) y="14" text-anchor=anchor>{text.clone()}</text> }.into_any()
        };
        let labels: Vec<AnyView> = self.ticks.iter().map(label).collect();
        view! {
            <div class="hm ax" aria-hidden="true">
                <span></span>
                <svg class="ch" width="100%" height="20">{labels}</svg>
                <span></span>
            </div>
        }
        .into_any()
    }

    /// A reading per cell, row by row.
    pub fn readings(&self) -> Vec<Vec<Reading>> {
        let width = 100.0 / self.spans.len().max(1) as f64;
        let row = |row: &HeatmapRow| {
            let name = visible(&row.name).into_owned();
            let cells = row.cells.iter().enumerate().map(|(place, cell)| Reading {
                at: place as f64 * width,
                width,
                title: self.spans.get(place).cloned().unwrap_or_default(),
                values: vec![
                    ("mono", name.clone()),
                    ("waiting", format!("{} waited", cell.text)),
                ],
                href: cell.href.clone(),
            });
            cells.collect()
        };
        self.rows.iter().map(row).collect()
    }

    /// The same texts as in the chart.
    pub fn table(&self) -> Table {
        let mut head = vec!["prefix".to_owned()];
        head.extend(self.spans.iter().cloned());
        head.push("in all".to_owned());
        let rows = self.rows.iter().map(|row| {
            let mut cells = vec![format!("{} {}", visible(&row.name), row.of).trim_end().to_owned()];
            cells.extend(row.cells.iter().map(|cell| cell.text.clone()));
            cells.push(row.total.clone());
            cells
        });
        Table {
            caption: self.title.clone(),
            head,
            rows: rows.collect(),
        }
    }
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;
    use crate::charts::chart_frame::data_table;

    fn map(rows: usize, cells: usize) -> HeatMap {
        let cell = |place: usize| Cell {
            heat: (!place.is_multiple_of(7)).then_some(place % 6),
            text: format!("{place} m 05 s"),
            href: place.is_multiple_of(3).then(|| format!("/contention?at={place}")),
            is_selected: place == 9,
        };
        let row = |number: usize| HeatmapRow {
            name: format!("tenant_*:<job{number}>"),
            of: "orders".to_owned(),
            href: Some("/locks?prefix=tenant_".to_owned()),
            cells: (0..cells).map(cell).collect(),
            total: "4 h 12 m".to_owned(),
            is_known: true,
        };
        HeatMap {
            title: "Waiting".to_owned(),
            spans: (0..cells)
                .map(|place| format!("{place}:00 to {place}:10"))
                .collect(),
            ticks: vec![(0.0, "00:00".to_owned()), (100.0, "24:00".to_owned())],
            rows: (0..rows).map(row).collect(),
        }
    }

    fn html(map: &HeatMap) -> String {
        Owner::new_root(None).with(|| {
            let (rows, axis, table) = (map.rows(), map.axis(), data_table(map.table()));
            view! { {HeatMap::head()}{rows}{axis}{table} }
                .into_any()
                .to_html()
                .replace("<!>", "")
        })
    }

    #[test]
    fn every_cell_equals_its_table_cell_and_its_reading() {
        // Titles of the chart, in order, equal the cells of the table and the readings.
        let map = map(3, 12);
        let html = html(&map);
        let (drawing, behind) = html.split_once("<table>").unwrap();
        let titles: Vec<&str> = drawing
            .split("<title>")
            .skip(1)
            .filter_map(|rest| rest.split_once("</title>"))
            .filter_map(|(title, _)| title.split_once(": "))
            .map(|(_, text)| text)
            .collect();
        let texts: Vec<String> = map
            .table()
            .rows
            .iter()
            .flat_map(|row| row[1..=12].to_vec())
            .collect();
        assert_eq!(titles, texts);
        let readings = map.readings().into_iter().flatten();
        let read: Vec<String> = readings
            .map(|reading| reading.values[1].1.replace(" waited", ""))
            .collect();
        assert_eq!(read, texts);
        assert!(
            texts
                .iter()
                .all(|text| behind.contains(&format!("<td>{text}</td>")))
        );
        assert!(!html.contains("<job"), "{html}");
    }

    #[test]
    fn cells_are_excluded_from_the_tab_order() {
        // Fails if a map of twenty rows takes a thousand presses of the tab key.
        let html = html(&map(20, 48));
        let (names, cells) = (
            html.matches("<a ").count(),
            html.matches(r#"tabindex="-1""#).count(),
        );
        assert_eq!((names - cells, cells), (20, 20 * 16));
    }

    #[test]
    fn unknown_cells_are_hatched() {
        // Cells 0 and 7 are unknown.
        let html = html(&map(1, 12));
        assert_eq!(html.matches(r#"class="hx""#).count(), 2);
        assert_eq!(html.matches(r#"class="h3 on""#).count(), 1);
    }
}
