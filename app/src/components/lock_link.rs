//! A lock's name as a link in a list.

use domain::escape::visible;
use domain::name_tree::shared_len;
use leptos::prelude::*;

use crate::links;

/// A lock as a link; segments shared with the name above are dimmed.
pub fn lock_link(href: &str, text: &str, above: &str) -> AnyView {
    let shared = if text == above {
        text.len()
    } else {
        shared_len(text, above)
    };
    let (dim, differs) = text.split_at(shared);
    let dim = (!dim.is_empty()).then(|| view! { <i>{visible(dim).into_owned()}</i> }.into_any());
    let rel = links::needs_browser(text).then_some("external");
    view! {
        <a class="res cut" href=href.to_owned() rel=rel title=visible(text).into_owned()>
            <bdi dir="ltr">{dim}{visible(differs).into_owned()}</bdi>
        </a>
    }
    .into_any()
}
