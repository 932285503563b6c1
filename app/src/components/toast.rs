//! Message of the last action: in the layout, so that it outlives the row it was about.

use std::time::Duration;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::components::state_badge::Shape;
use crate::done_messages;

const SHOWN_FOR: Duration = Duration::from_secs(10);

#[derive(Clone, Copy)]
pub struct Toast(RwSignal<Option<&'static str>>);

/// Requires the app, which provides it.
pub fn use_toast() -> Toast {
    use_context::<Toast>().unwrap_or_default()
}

impl Toast {
    pub fn new() -> Self {
        Self(RwSignal::new(None))
    }

    /// The message of a page that a form leads to, by the key in its query.
    pub fn show_for(self, to: &str) {
        let (path, search) = to.split_once('?').unwrap_or((to, ""));
        let message = done_messages::find(path, search);
        self.0.set(message);
        let clear = move || {
            if self.0.try_get_untracked() == Some(message) {
                self.0.try_set(None);
            }
        };
        set_timeout(clear, SHOWN_FOR);
    }
}

impl Default for Toast {
    fn default() -> Self {
        Self::new()
    }
}

/// The message, from the URL or from a form that stayed on its page.
#[component]
pub fn ToastMessage() -> impl IntoView {
    let toast = use_toast();
    let location = use_location();
    // Clears the message of the previous page.
    Effect::new(move |before: Option<String>| {
        let path = location.pathname.get();
        if before.is_some_and(|before| before != path) {
            toast.0.try_set(None);
        }
        path
    });
    let shown = move || {
        let of_url = done_messages::find(&location.pathname.get(), &location.search.get());
        toast.0.get().or(of_url)
    };
    view! {
        <div class="toast" role="status">
            {move || shown().map(|text| view! { <p class="notice healthy"><Shape name="ok"/><span>{text}</span></p> }.into_any())}
        </div>
    }
    .into_any()
}
