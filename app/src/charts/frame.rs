//! What stands around every chart: a title that is a finding, a legend of what is drawn, and the same numbers as a table for
//! who cannot see the drawing.

use super::markup::Markup;

/// A chart as a section of a page.
pub struct Frame {
    /// Of this chart alone on its page.
    pub id: &'static str,
    pub title: String,
    /// How to read it, in small, beside the title.
    pub note: String,
    /// At the end of the title's line: links.
    pub end: Markup,
    pub drawing: Markup,
    pub legend: Vec<Key>,
    pub table: Table,
}

/// One entry of a legend.
pub struct Key {
    /// Of the sprite, or one of the swatches that the style sheet knows.
    pub swatch: Swatch,
    pub word: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swatch {
    /// Name in the sprite, without `s-`; class of its hue.
    Shape(&'static str, &'static str),
    /// Class of a filled area.
    Area(&'static str),
    /// Class of a line from top to bottom.
    Rule(&'static str),
}

/// The numbers of a drawing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Key {
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
                it.said("h2", &[("id", &head_id)], &frame.title);
                it.said("span", &[("class", "note")], &frame.note);
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

pub fn legend(it: &mut Markup, keys: &[Key]) {
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

/// For screen readers: the drawing shows the same.
pub fn table(it: &mut Markup, table: &Table) {
    it.wrap("div", &[("class", "sr")], |it| {
        it.wrap("table", &[], |it| {
            it.said("caption", &[], &table.caption);
            it.wrap("thead", &[], |it| {
                it.wrap("tr", &[], |it| {
                    for word in &table.head {
                        it.said("th", &[("scope", "col")], word);
                    }
                });
            });
            it.wrap("tbody", &[], |it| {
                for row in &table.rows {
                    it.wrap("tr", &[], |it| {
                        for cell in row {
                            it.said("td", &[], cell);
                        }
                    });
                }
            });
        });
    });
}

/// Opens a drawing: a picture with a title, or a group where marks lead somewhere, because a picture has no links inside.
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
            it.said("title", &[], title);
            inside(it);
        },
    );
}
