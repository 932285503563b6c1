//! Copies one text and confirms it.

use std::time::Duration;

use leptos::prelude::*;

const SAID_FOR: Duration = Duration::from_secs(2);

#[component]
pub fn CopyButton(#[prop(into)] text: Signal<String>, #[prop(into)] label: String) -> impl IntoView {
    let copied = RwSignal::new(false);
    let copy = move |_| {
        let written = window().navigator().clipboard().write_text(&text.get_untracked());
        leptos::task::spawn_local(async move {
            let done = wasm_bindgen_futures::JsFuture::from(written).await.is_ok();
            // `try_set`: the user may have left the page in the meantime.
            copied.try_set(done);
            set_timeout(
                move || {
                    copied.try_set(false);
                },
                SAID_FOR,
            );
        });
    };
    view! {
        <button class="btn s" type="button" on:click=copy>
            {label}<span class="sr" aria-live="polite">{move || copied.get().then_some(" copied")}</span>
            {move || copied.get().then(|| view! { <svg class="sh" viewBox="0 0 12 12" aria-hidden="true"><use href="#s-ok"></use></svg> }.into_any())}
        </button>
    }
}
