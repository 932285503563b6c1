//! What one wants on the clipboard at 3 a.m.: the name, the address, and the command lines that ask the same.

use domain::detail::LockDetail;
use domain::lock::Lock;
use domain::shell;
use leptos::prelude::*;

use crate::components::copy_button::CopyButton;
use crate::links;

#[component]
pub fn Copies(detail: Signal<LockDetail>) -> impl IntoView {
    let of =
        move |text: fn(&Lock) -> String| Signal::derive(move || detail.with(|detail| text(&detail.lock)));
    view! {
        <div class="copies" role="group" aria-label="copy">
            <span class="small ink3" aria-hidden="true">"copy"</span>
            <CopyButton label="name" text=of(|lock| lock.id.resource.text())/>
            <CopyButton label="link" text=of(|lock| format!("{}{}", origin(), links::lock(lock)))/>
            <CopyButton label="curl" text=of(curl)/>
            <CopyButton label="CLI" text=of(cli)/>
        </div>
    }
}

/// Of this very console. Only ever asked for on a click.
fn origin() -> String {
    window().location().origin().unwrap_or_default()
}

fn curl(lock: &Lock) -> String {
    let path = links::lock(lock).replacen("/locks/", "/v1/inventory/", 1);
    format!("curl -sS {}", shell::quote(&format!("{}{path}", origin())))
}

fn cli(lock: &Lock) -> String {
    format!(
        "leasehold locks --server {} --backend {} --prefix={}",
        shell::quote(&origin()),
        lock.id.backend,
        shell::quote(&lock.id.resource.text())
    )
}
