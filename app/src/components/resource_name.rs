//! A name as its users wrote it: shared leading segments dimmed, hidden characters made visible.

use domain::escape::visible;
use leptos::prelude::*;

/// No line shows more of a name than this, and no hover more than that, in bytes: names may be of 64 KiB.
const LINE_BYTES_MAX: usize = 320;
const TITLE_BYTES_MAX: usize = 2_048;

#[component]
pub fn ResourceName(
    /// The text form.
    name: String,
    /// How many leading bytes are shared with the name above: dimmed.
    #[prop(optional)]
    shared: usize,
    /// One line, and a name too long loses its start; else it wraps.
    #[prop(optional)]
    cut: bool,
) -> impl IntoView {
    let Parts { title, dim, differs } = Parts::of(&name, shared, cut);
    view! {
        <span class=if cut { "res cut" } else { "res wrapname" } title=title>
            <bdi dir="ltr">{(!dim.is_empty()).then(|| view! { <i>{dim}</i> }.into_any())}{differs}</bdi>
        </span>
    }
}

/// A name as it is shown.
pub struct Parts {
    /// The whole of it, where the line may not hold it.
    pub title: Option<String>,
    /// What the name above has too.
    pub dim: String,
    pub differs: String,
}

impl Parts {
    pub fn of(name: &str, shared: usize, cut: bool) -> Self {
        // Only a name that may be cut needs to be whole on hover.
        let title = (cut && name.len() > 24).then(|| ends(starts(last(name, TITLE_BYTES_MAX))));
        let shared = if name.is_char_boundary(shared) { shared } else { 0 };
        let (dim, differs) = name.split_at(shared.min(name.len()));
        let (dim, differs) = match last(differs, LINE_BYTES_MAX) {
            end if cut && end.len() < differs.len() => ("", end),
            _ => (dim, differs),
        };
        let differs = ends(if dim.is_empty() {
            starts(differs)
        } else {
            visible(differs).into_owned()
        });
        Self {
            title,
            dim: starts(dim),
            differs,
        }
    }
}

/// The last bytes of a text, from a whole character on.
fn last(text: &str, bytes: usize) -> &str {
    let start = (text.len().saturating_sub(bytes)..=text.len()).find(|at| text.is_char_boundary(*at));
    start.map_or("", |start| &text[start..])
}

/// Made visible, a space at the very start too.
fn starts(text: &str) -> String {
    match text.strip_prefix(' ') {
        Some(rest) => format!("\\u{{20}}{}", visible(rest)),
        None => visible(text).into_owned(),
    }
}

/// A space at the very end made visible.
fn ends(text: String) -> String {
    match text.strip_suffix(' ') {
        Some(rest) => format!("{rest}\\u{{20}}"),
        None => text,
    }
}
