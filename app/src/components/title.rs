//! The document title. The only place that uses `leptos_meta::Title`, which writes its text
//! into the server's HTML unescaped: a lock named `x</title><meta …>` would add elements to its
//! own page.

use leptos::prelude::*;
use leptos::text_prop::TextProp;
use leptos_meta::ServerMetaContext;

use super::escape_html::escape_html;
use crate::session::use_session;

const PRODUCT: &str = "Leasehold";

/// Once, at the root: applies to every page title.
///
/// The server writes HTML, so the text is escaped there. The browser assigns `document.title`,
/// which takes plain text. `ServerMetaContext` exists in the context of the server's renderer
/// only.
#[component]
#[expect(
    clippy::disallowed_methods,
    reason = "this component escapes what leptos_meta does not"
)]
pub fn TitleFormat() -> impl IntoView {
    let is_html = use_context::<ServerMetaContext>().is_some();
    let session = use_session();
    let first = session.with_untracked(|session| session.firing_groups);
    let formatter = move |page: String| {
        // The server calls this after the page's signals were disposed of.
        let groups = if is_html { first } else { session.firing_groups() };
        let title = with_count(groups, full(&page));
        if is_html {
            escape_html(&title).into_owned()
        } else {
            title
        }
    };
    view! { <leptos_meta::Title formatter/> }
}

/// The title of one page, as plain text; [`TitleFormat`] appends the product name.
#[component]
#[expect(
    clippy::disallowed_methods,
    reason = "the formatter of TitleFormat escapes the text"
)]
pub fn PageTitle(#[prop(into)] text: TextProp) -> impl IntoView {
    // Evaluated now: the server writes the title later, when its thread may run another page, whose values would be read.
    let text = if cfg!(feature = "ssr") {
        text.get().into()
    } else {
        text
    };
    view! { <leptos_meta::Title text/> }
}

/// `(5) Alerts · Leasehold`
fn with_count(groups: u32, title: String) -> String {
    match groups {
        0 => title,
        groups => format!("({groups}) {title}"),
    }
}

fn full(page: &str) -> String {
    if page.is_empty() {
        PRODUCT.to_owned()
    } else {
        format!("{page} · {PRODUCT}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_without_a_title_has_the_name_of_the_product() {
        assert_eq!(full(""), "Leasehold");
        assert_eq!(full("Locks"), "Locks · Leasehold");
        assert_eq!(with_count(0, full("Locks")), "Locks · Leasehold");
        assert_eq!(with_count(5, full("Locks")), "(5) Locks · Leasehold");
    }
}
