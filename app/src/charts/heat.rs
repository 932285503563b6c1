//! Prefixes by time: a row each, as dark as was waited in a cell, hatched where nobody knows.

use super::frame::{Table, table};
use super::markup::{Markup, percent};

/// One cell with what it says.
pub struct Cell {
    /// 0 to 5; none: not known.
    pub heat: Option<usize>,
    /// What was waited, as its table says it too.
    pub word: String,
    /// Where its sentence is shown; none where there is nothing to say.
    pub href: Option<String>,
    pub is_selected: bool,
}

pub struct Row {
    pub name: String,
    /// In small beside the name.
    pub of: String,
    /// To the locks of this row.
    pub href: Option<String>,
    pub cells: Vec<Cell>,
    /// `4 h 12 m`, or `unknown`.
    pub total: String,
    pub is_known: bool,
}

pub struct HeatMap {
    pub title: String,
    /// When each cell is: `02:40 to 02:50`.
    pub spans: Vec<String>,
    /// Place in per cent and word.
    pub ticks: Vec<(f64, String)>,
    pub rows: Vec<Row>,
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
                    it.said("span", &[], "prefix").said("span", &[], "").said(
                        "span",
                        &[("class", "num")],
                        "waited",
                    );
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

    fn row(&self, it: &mut Markup, row: &Row) {
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
                it.said("small", &[("class", "ink3")], &row.of);
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
            it.said("span", &[("class", class)], &row.total);
        });
    }

    fn cells(&self, it: &mut Markup, row: &Row) {
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
                it.told("rect", &mark, &said);
            };
            match &cell.href {
                // Hundreds of them: no stop of the tab key. By keyboard one steps from the selected cell to the next.
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
            it.said("span", &[], "");
            it.wrap(
                "svg",
                &[("class", "ch"), ("width", "100%"), ("height", "20")],
                |it| {
                    for (at, word) in &self.ticks {
                        let anchor = if *at > 95.0 { "end" } else { "start" };
                        it.said(
                            "text",
                            &[("x", &percent(*at)), ("y", "14"), ("text-anchor", anchor)],
                            word,
                        );
                    }
                },
            );
            it.said("span", &[], "");
        });
    }

    /// The same words as in the drawing.
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
        let row = |number: usize| Row {
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
    fn every_cell_says_what_its_table_says() {
        // The titles of the drawing, in order, against the cells of the table behind it.
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
    fn no_cell_is_a_stop_of_the_tab_key() {
        // Would catch a map of twenty rows that takes a thousand presses to get past.
        let html = map(20, 48).markup().into_string();
        let (names, cells) = (
            html.matches("<a ").count(),
            html.matches(r#"tabindex="-1""#).count(),
        );
        assert_eq!((names - cells, cells), (20, 20 * 16));
    }

    #[test]
    fn what_is_not_known_is_hatched_and_never_the_lightest() {
        // Cell 0 and 7 are not known.
        let html = map(1, 12).markup().into_string();
        assert_eq!(html.matches(r#"class="hx""#).count(), 2);
        assert_eq!(html.matches(r#"class="h3 on""#).count(), 1);
    }
}
