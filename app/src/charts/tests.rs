//! Renders parts of a page to HTML, as the server does.

use leptos::prelude::*;
use leptos_router::components::Router;
use leptos_router::location::RequestUrl;

/// Without the markers between text nodes.
pub(crate) fn html(view: impl Fn() -> AnyView + Send + Sync + 'static) -> String {
    Owner::new_root(None).with(|| {
        provide_context(RequestUrl::new("/"));
        let view = view! { <Router>{view()}</Router> };
        view.into_any().to_html().replace("<!>", "")
    })
}
