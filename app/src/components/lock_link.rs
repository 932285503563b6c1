//! A lock's name as a link in a list.

use domain::name_tree::shared_len;
use leptos::prelude::*;

use super::resource_name::NameParts;
use crate::links;

/// A lock as a link; segments shared with the name above are dimmed.
pub fn lock_link(href: &str, text: &str, above: &str) -> AnyView {
    let shared = if text == above {
        text.len()
    } else {
        shared_len(text, above)
    };
    let NameParts { title, dim, differs } = NameParts::split(text, shared, true);
    let dim = (!dim.is_empty()).then(|| view! { <i>{dim}</i> }.into_any());
    let rel = links::needs_browser(text).then_some("external");
    view! {
        <a class="res cut" href=href.to_owned() rel=rel title=title>
            <bdi dir="ltr">{dim}{differs}</bdi>
        </a>
    }
    .into_any()
}

#[cfg(all(test, feature = "ssr"))]
mod tests {
    use super::*;

    #[test]
    fn a_link_shows_the_end_of_a_long_name_only() {
        // Alone, and below the same name, all of which is dimmed.
        let name = format!("{}:end", "a".repeat(65_536));
        for above in ["", name.as_str()] {
            let html = Owner::new_root(None).with(|| lock_link("/locks/a", &name, above).to_html());
            assert!(
                html.contains(":end") && html.len() < 8_000,
                "{} bytes",
                html.len()
            );
        }
    }
}
