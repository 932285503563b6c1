//! Frame of a chart: title, legend, and a table of the same numbers for screen readers.

use super::html_writer::Markup;

/// A chart as a section of a page.
pub struct Frame {
    /// Unique on the page.
    pub id: &'static str,
    pub title: String,
    /// How to read the chart; small text after the title.
    pub note: String,
    /// Links at the end of the title's line.
    pub end: Markup,
    pub drawing: Markup,
    pub legend: Vec<LegendEntry>,
    pub table: Table,
}

/// One entry of a legend.
pub struct LegendEntry {
    /// A sprite shape, or a swatch of the style sheet.
    pub swatch: Swatch,
    pub word: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swatch {
    /// Name in the sprite, without `s-`; CSS class of its hue.
    Shape(&'static str, &'static str),
    /// CSS class of a filled area.
    Area(&'static str),
    /// CSS class of a vertical line.
    Rule(&'static str),
}

/// The numbers of a chart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl LegendEntry {
    pub fn new(swatch: Swatch, word: impl Into<String>) -> Self {
        let word = word.into();
        Self { swatch, word }
    }
}

pub fn frame(frame: &Frame) -> Markup {
    let head_id = format!("{}-head", frame.id);
    let mut it = Markup::new();
    it.wrap(
        "section",
        &[
            ("class", "sec chart"),
            ("id", frame.id),
            ("aria-labelledby", &head_id),
        ],
        |it| {
            it.wrap("header", &[], |it| {
                it.text_element("h2", &[("id", &head_id)], &frame.title);
                it.text_element("span", &[("class", "note")], &frame.note);
                if !frame.end.is_empty() {
                    it.wrap("span", &[("class", "end")], |it| {
                        it.push(&frame.end);
                    });
                }
            });
            it.push(&frame.drawing);
            legend(it, &frame.legend);
            table(it, &frame.table);
        },
    );
    it
}

pub fn legend(it: &mut Markup, keys: &[LegendEntry]) {
    if keys.is_empty() {
        return;
    }
    it.wrap("p", &[("class", "legend keys")], |it| {
        for key in keys {
            it.wrap("span", &[], |it| {
                swatch(it, key.swatch);
                it.text(&key.word);
            });
        }
    });
}

fn swatch(it: &mut Markup, swatch: Swatch) {
    match swatch {
        Swatch::Shape(name, hue) => shape(it, name, hue),
        Swatch::Area(class) => {
            it.wrap(
                "svg",
                &[("viewBox", "0 0 16 12"), ("aria-hidden", "true")],
                |it| {
                    it.mark(
                        "rect",
                        &[
                            ("class", class),
                            ("x", ".5"),
                            ("y", ".5"),
                            ("width", "15"),
                            ("height", "11"),
                        ],
                    );
                },
            );
        }
        Swatch::Rule(class) => {
            it.wrap(
                "svg",
                &[("viewBox", "0 0 16 12"), ("aria-hidden", "true")],
                |it| {
                    it.mark("path", &[("class", class), ("d", "M8 0v12")]);
                },
            );
        }
    }
}

/// One shape of the sprite.
pub fn shape(it: &mut Markup, name: &str, hue: &str) {
    let class = format!("sh {hue}");
    it.wrap(
        "svg",
        &[
            ("class", class.trim_end()),
            ("viewBox", "0 0 12 12"),
            ("aria-hidden", "true"),
        ],
        |it| {
            it.mark("use", &[("href", &format!("#s-{name}"))]);
        },
    );
}

/// For screen readers: shows the same numbers.
pub fn table(it: &mut Markup, table: &Table) {
    it.wrap("div", &[("class", "sr")], |it| {
        it.wrap("table", &[], |it| {
            it.text_element("caption", &[], &table.caption);
            it.wrap("thead", &[], |it| {
                it.wrap("tr", &[], |it| {
                    for word in &table.head {
                        it.text_element("th", &[("scope", "col")], word);
                    }
                });
            });
            it.wrap("tbody", &[], |it| {
                for row in &table.rows {
                    it.wrap("tr", &[], |it| {
                        for cell in row {
                            it.text_element("td", &[], cell);
                        }
                    });
                }
            });
        });
    });
}

/// Opens an `svg`: role `img` with a title, or `group` if marks are links, because an image has
/// no links inside.
pub fn drawing(
    it: &mut Markup,
    class: &str,
    height: u32,
    title: &str,
    has_links: bool,
    inside: impl FnOnce(&mut Markup),
) {
    let class = format!("ch {class}");
    let height = height.to_string();
    let role = if has_links { "group" } else { "img" };
    it.wrap(
        "svg",
        &[
            ("class", class.trim_end()),
            ("width", "100%"),
            ("height", &height),
            ("role", role),
            ("aria-label", title),
        ],
        |it| {
            it.text_element("title", &[], title);
            inside(it);
        },
    );
}
