//! A lock's name: shared leading segments dimmed, hidden characters made visible.

use domain::escape::visible;
use leptos::prelude::*;

/// Most bytes shown in a line, and on hover: names may have 64 KiB.
const LINE_BYTES_MAX: usize = 320;
const TITLE_BYTES_MAX: usize = 2_048;

#[component]
pub fn ResourceName(
    /// The text form.
    name: String,
    /// Number of leading bytes shared with the name above; dimmed.
    #[prop(optional)]
    shared: usize,
    /// Single line, truncated at its start; otherwise it wraps.
    #[prop(optional)]
    cut: bool,
) -> impl IntoView {
    let NameParts { title, dim, differs } = NameParts::split(&name, shared, cut);
    view! {
        <span class=if cut { "res cut" } else { "res wrapname" } title=title>
            <bdi dir="ltr">{(!dim.is_empty()).then(|| view! { <i>{dim}</i> }.into_any())}{differs}</bdi>
        </span>
    }
}

/// Displayed parts of a name.
pub struct NameParts {
    /// The full name, if the line may not show it.
    pub title: Option<String>,
    /// Part shared with the name above.
    pub dim: String,
    pub differs: String,
}

impl NameParts {
    pub fn split(name: &str, shared: usize, cut: bool) -> Self {
        // Only a name that may be truncated needs its full text on hover.
        let title = (cut && name.len() > 24)
            .then(|| mark_trailing_space(visible_with_leading_space(last(name, TITLE_BYTES_MAX))));
        let shared = if name.is_char_boundary(shared) { shared } else { 0 };
        let (dim, differs) = name.split_at(shared.min(name.len()));
        let (dim, differs) = match last(differs, LINE_BYTES_MAX) {
            end if cut && end.len() < differs.len() => ("", end),
            _ if cut => (last(dim, LINE_BYTES_MAX), differs),
            _ => (dim, differs),
        };
        let differs = mark_trailing_space(if dim.is_empty() {
            visible_with_leading_space(differs)
        } else {
            visible(differs).into_owned()
        });
        Self {
            title,
            dim: visible_with_leading_space(dim),
            differs,
        }
    }
}

/// The last bytes of a text, from a character boundary on.
fn last(text: &str, bytes: usize) -> &str {
    let start = (text.len().saturating_sub(bytes)..=text.len()).find(|at| text.is_char_boundary(*at));
    start.map_or("", |start| &text[start..])
}

/// Hidden characters made visible, including a leading space.
fn visible_with_leading_space(text: &str) -> String {
    match text.strip_prefix(' ') {
        Some(rest) => format!("\\u{{20}}{}", visible(rest)),
        None => visible(text).into_owned(),
    }
}

/// A trailing space made visible.
fn mark_trailing_space(text: String) -> String {
    match text.strip_suffix(' ') {
        Some(rest) => format!("{rest}\\u{{20}}"),
        None => text,
    }
}
