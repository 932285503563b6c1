//! Texts to copy: the name, the URL, and equivalent command lines.

use domain::lock::Lock;
use domain::lock_detail::LockDetail;
use domain::shell_quote;
use leptos::prelude::*;

use crate::components::copy_button::CopyButton;
use crate::links;

#[component]
pub fn Copies(detail: Signal<LockDetail>) -> impl IntoView {
    let text_of =
        move |text: fn(&Lock) -> String| Signal::derive(move || detail.with(|detail| text(&detail.lock)));
    view! {
        <div class="copies" role="group" aria-label="copy">
            <span class="small ink3" aria-hidden="true">"copy"</span>
            <CopyButton label="name" text=text_of(|lock| lock.id.resource.text())/>
            <CopyButton label="link" text=text_of(|lock| format!("{}{}", origin(), links::lock(lock)))/>
            <CopyButton label="curl" text=text_of(curl)/>
            <CopyButton label="CLI" text=text_of(cli)/>
        </div>
    }
}

/// Origin of this console. Called on click only.
fn origin() -> String {
    window().location().origin().unwrap_or_default()
}

fn curl(lock: &Lock) -> String {
    let path = links::lock(lock).replacen("/locks/", "/v1/inventory/", 1);
    format!("curl -sS {}", shell_quote::quote(&format!("{}{path}", origin())))
}

fn cli(lock: &Lock) -> String {
    format!(
        "leasehold locks --server {} --backend {} --prefix={}",
        shell_quote::quote(&origin()),
        lock.id.backend,
        shell_quote::quote(&lock.id.resource.text())
    )
}
