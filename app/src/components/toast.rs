//! Message of the last action: in the layout, so that it outlives the row it was about.

use std::time::Duration;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use crate::components::reactive::keyed;
use crate::components::state_badge::Shape;
use crate::done_messages;
use crate::live::use_live;

const SHOWN_FOR: Duration = Duration::from_secs(10);

/// Number of the last message, and the message while it is shown.
#[derive(Clone, Copy)]
pub struct Toast(RwSignal<(u32, Option<&'static str>)>);

/// Available below the app, which provides it.
pub fn use_toast() -> Toast {
    use_context::<Toast>().unwrap_or_default()
}

impl Toast {
    pub fn new() -> Self {
        Self(RwSignal::new((0, None)))
    }

    /// The message of a page that a form leads to, by the key in its query.
    pub fn show_for(self, to: &str) {
        let (path, search) = to.split_once('?').unwrap_or((to, ""));
        self.show(done_messages::find(path, search));
    }

    fn show(self, message: Option<&'static str>) {
        let number = self.0.try_update(|shown| {
            *shown = (shown.0.wrapping_add(1), message);
            shown.0
        });
        // A later message has a timer of its own.
        let clear = move || {
            let last = self.0.try_get_untracked();
            if let Some((last, _)) = last.filter(|(last, _)| Some(*last) == number) {
                self.0.try_set((last, None));
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
        let is_relevant = message.is_some() || before.is_some_and(|before| before != path);
        // Not shown twice: the form that led to this page has shown its message already.
        if is_relevant && toast.0.get_untracked().1 != message {
            toast.show(message);
        }
        path
    });
    let shown = Memo::new(move |_| message(toast.0.get().1, of_url.get(), live.is_awake()));
    // Each message is a new element, so that a screen reader also announces a repeated text.
    let keys = Memo::new(move |_| {
        let number = toast.0.get().0;
        shown
            .get()
            .iter()
            .map(|_| number.to_string())
            .collect::<Vec<String>>()
    });
    view! {
        <div class="toast" role="status">
            {keyed(keys, move |_| view! { <p class="notice healthy"><Shape name="ok"/><span>{shown.get_untracked()}</span></p> }.into_any())}
        </div>
    }
    .into_any()
}

/// The message to show. With a script, the message of the URL is shown for a limited time too, and only once.
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
        // A receiver was removed, another one is added on the same page, and the timer of the second message ends.
        let removed = Some("Receiver removed.");
        assert_eq!(message(None, removed, false), removed);
        let added = Some("Receiver added.");
        assert_eq!(message(added, removed, true), added);
        assert_eq!(message(None, removed, true), None);
    }
}
