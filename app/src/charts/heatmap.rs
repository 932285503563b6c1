//! Heatmap of prefixes over time: one row per prefix, darkness by wait time, unknown cells
//! hatched.

use super::chart_frame::{Table, table};
use super::html_writer::{Markup, percent};

/// One cell with what it says.
pub struct Cell {
    /// 0 to 5; `None`: unknown.
    pub heat: Option<usize>,
    /// Wait time, as in the table.
    pub word: String,
    /// Link to the cell's details; `None` without any.
    pub href: Option<String>,
    pub is_selected: bool,
}

pub struct HeatmapRow {
    pub name: String,
    /// Small text after the name.
    pub of: String,
    /// Link to the locks of this row.
    pub href: Option<String>,
    pub cells: Vec<Cell>,
    /// `4 h 12 m`, or `unknown`.
    pub total: String,
    pub is_known: bool,
}

pub struct HeatMap {
    pub title: String,
    /// Interval of each column: `02:40 to 02:50`.
    pub spans: Vec<String>,
    /// Position in per cent and label.
    pub ticks: Vec<(f64, String)>,
    pub rows: Vec<HeatmapRow>,
}

const HEIGHT: &str = "28";

impl HeatMap {
    pub fn markup(&self) -> Markup {
        let mut it = Markup::new();
        it.wrap("div", &[("class", "hmap")], |it| {
            it.wrap(
                "div",
                &[("class", "hm hh small ink3"), ("aria-hidden", "true")],
                |it| {
                    it.text_element("span", &[], "prefix")
                        .text_element("span", &[], "")
                        .text_element("span", &[("class", "num")], "waited");
                },
            );
            for row in &self.rows {
                self.row(it, row);
            }
            self.axis(it);
        });
        table(&mut it, &self.table());
        it
    }

    fn row(&self, it: &mut Markup, row: &HeatmapRow) {
        it.wrap("div", &[("class", "hm")], |it| {
            it.wrap("span", &[("class", "hn")], |it| {
                let name = |it: &mut Markup| {
                    it.wrap("span", &[("class", "res cut")], |it| {
                        it.name(&row.name);
                    });
                };
                match &row.href {
                    Some(href) => it.wrap("a", &[("href", href)], name),
                    None => it.wrap("span", &[], name),
                };
                it.text_element("small", &[("class", "ink3")], &row.of);
            });
            let label = format!("{}: {} waited", row.name, row.total);
            let picture = [
                ("class", "ch"),
                ("width", "100%"),
                ("height", HEIGHT),
                ("role", "group"),
                ("aria-label", &label),
            ];
            it.wrap("svg", &picture, |it| self.cells(it, row));
            let class = if row.is_known { "num" } else { "num ink3" };
            it.text_element("span", &[("class", class)], &row.total);
        });
    }

    fn cells(&self, it: &mut Markup, row: &HeatmapRow) {
        let width = 100.0 / self.spans.len().max(1) as f64;
        for (place, cell) in row.cells.iter().enumerate() {
            let said = format!(
                "{}: {}",
                self.spans.get(place).map_or("", String::as_str),
                cell.word
            );
            let class = match (cell.heat, cell.is_selected) {
                (None, _) => "hx".to_owned(),
                (Some(heat), false) => format!("h{}", heat.min(5)),
                (Some(heat), true) => format!("h{} on", heat.min(5)),
            };
            let (x, wide) = (percent(place as f64 * width), percent(width));
            let mark = [
                ("class", class.as_str()),
                ("x", &x),
                ("y", "1"),
                ("width", &wide),
                ("height", "26"),
            ];
            let picture = |it: &mut Markup| {
                it.titled_element("rect", &mark, &said);
            };
            match &cell.href {
                // Hundreds of links: excluded from the tab order. Arrow links lead from the
                // selected cell to its neighbours.
                Some(href) => {
                    let link = [("href", href.as_str()), ("aria-label", &said), ("tabindex", "-1")];
                    it.wrap("a", &link, picture);
                }
                None => picture(it),
            }
        }
    }

    fn axis(&self, it: &mut Markup) {
        it.wrap("div", &[("class", "hm ax"), ("aria-hidden", "true")], |it| {
            it.text_element("span", &[], "");
            it.wrap(
                "svg",
                &[("class", "ch"), ("width", "100%"), ("height", "20")],
                |it| {
                    for (at, word) in &self.ticks {
                        let anchor = if *at > 95.0 { "end" } else { "start" };
                        it.text_element(
                            "text",
                            &[("x", &percent(*at)), ("y", "14"), ("text-anchor", anchor)],
                            word,
                        );
                    }
                },
            );
            it.text_element("span", &[], "");
        });
    }

    /// The same texts as in the chart.
    pub fn table(&self) -> Table {
        let mut head = vec!["prefix".to_owned()];
        head.extend(self.spans.iter().cloned());
        head.push("in all".to_owned());
        let rows = self.rows.iter().map(|row| {
            let mut words = vec![format!("{} {}", row.name, row.of).trim_end().to_owned()];
            words.extend(row.cells.iter().map(|cell| cell.word.clone()));
            words.push(row.total.clone());
            words
        });
        Table {
            caption: self.title.clone(),
            head,
            rows: rows.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(rows: usize, cells: usize) -> HeatMap {
        let cell = |place: usize| Cell {
            heat: (!place.is_multiple_of(7)).then_some(place % 6),
            word: format!("{place} m 05 s"),
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

    #[test]
    fn every_cell_equals_its_table_cell() {
        // Titles of the chart, in order, equal the cells of the table.
        let map = map(3, 12);
        let html = map.markup().into_string();
        let (drawing, behind) = html.split_once("<table>").unwrap();
        let told: Vec<&str> = drawing
            .split("<title>")
            .skip(1)
            .filter_map(|rest| rest.split_once("</title>"))
            .filter_map(|(title, _)| title.split_once(": "))
            .map(|(_, word)| word)
            .collect();
        let words: Vec<String> = map
            .table()
            .rows
            .iter()
            .flat_map(|row| row[1..=12].to_vec())
            .collect();
        assert_eq!(told, words);
        assert!(
            words
                .iter()
                .all(|word| behind.contains(&format!("<td>{word}</td>")))
        );
        assert!(!html.contains("<job"), "{html}");
    }

    #[test]
    fn cells_are_excluded_from_the_tab_order() {
        // Fails if a map of twenty rows takes a thousand presses of the tab key.
        let html = map(20, 48).markup().into_string();
        let (names, cells) = (
            html.matches("<a ").count(),
            html.matches(r#"tabindex="-1""#).count(),
        );
        assert_eq!((names - cells, cells), (20, 20 * 16));
    }

    #[test]
    fn unknown_cells_are_hatched() {
        // Cells 0 and 7 are unknown.
        let html = map(1, 12).markup().into_string();
        assert_eq!(html.matches(r#"class="hx""#).count(), 2);
        assert_eq!(html.matches(r#"class="h3 on""#).count(), 1);
    }
}
