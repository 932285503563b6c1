//! Message of the last action: in the layout, so that it outlives the row it was about.

use std::time::Duration;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::components::state_badge::Shape;
use crate::done_messages;
use crate::live::use_live;

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
        self.show(done_messages::find(path, search));
    }

    fn show(self, message: Option<&'static str>) {
        self.0.try_set(message);
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
    let (toast, live) = (use_toast(), use_live());
    let location = use_location();
    let of_url = Memo::new(move |_| done_messages::find(&location.pathname.get(), &location.search.get()));
    // Also clears the message of the previous page.
    Effect::new(move |before: Option<String>| {
        let path = location.pathname.get();
        let message = of_url.get();
        if message.is_some() || before.is_some_and(|before| before != path) {
            toast.show(message);
        }
        path
    });
    let shown = move || message(toast.0.get(), of_url.get(), live.is_awake());
    view! {
        <div class="toast" role="status">
            {move || shown().map(|text| view! { <p class="notice healthy"><Shape name="ok"/><span>{text}</span></p> }.into_any())}
        </div>
    }
    .into_any()
}

/// With a script the message of the URL is a toast as well: it ends, and does not return after a later one.
fn message(
    toast: Option<&'static str>,
    of_url: Option<&'static str>,
    has_script: bool,
) -> Option<&'static str> {
    toast.or(of_url.filter(|_| !has_script))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_url_does_not_return_after_another() {
        // A receiver was removed, another is added on the same page; its message ends.
        let removed = Some("Removed.");
        assert_eq!(message(None, removed, false), removed);
        let added = Some("Receiver added.");
        assert_eq!(message(added, removed, true), added);
        assert_eq!(message(None, removed, true), None);
    }
}
