//! A name as its users wrote it: shared leading segments dimmed, hidden characters made visible.

use domain::escape::visible;
use leptos::prelude::*;

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
    let shared = if name.is_char_boundary(shared) { shared } else { 0 };
    let (dim, differs) = name.split_at(shared.min(name.len()));
    let (dim, differs) = (visible(dim).into_owned(), visible(differs).into_owned());
    // Only a name that may be cut needs to be whole on hover.
    let title = (cut && name.len() > 24).then(|| visible(&name).into_owned());
    view! {
        <span class=if cut { "res cut" } else { "res wrapname" } title=title>
            <bdi dir="ltr">{(!dim.is_empty()).then(|| view! { <i>{dim}</i> })}{differs}</bdi>
        </span>
    }
}
