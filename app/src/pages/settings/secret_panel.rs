//! A secret that the server showed once, in place of the form that created it.

use leptos::prelude::*;

use crate::components::copy_button::CopyButton;
use crate::components::state_badge::Shape;
use crate::focus::{HEADINGS, pass_on_focus};
use crate::forms::console_form::FormState;

/// Name of the result with the secret.
pub const SECRET: &str = "secret";
/// Name of the result with the name of what was created.
pub const CREATED_NAME: &str = "name";

#[component]
pub fn SecretPanel(
    state: FormState,
    #[prop(into)] title: String,
    secret: String,
    /// Where the secret is used, and what happens when it is lost.
    note: &'static str,
    /// Lines to copy: label and text.
    #[prop(optional)]
    lines: Vec<(&'static str, String)>,
) -> impl IntoView {
    pass_on_focus(".once:has(:focus)", HEADINGS);
    let lines = lines.into_iter().map(|(label, text)| {
        view! {
            <div><dt>{label}</dt><dd class="mono">{text.clone()}</dd><CopyButton text=text label="Copy"/></div>
        }
        .into_any()
    });
    view! {
        <section class="once" role="status" aria-labelledby="once">
            <h2 id="once"><span class="st healthy"><Shape name="ok"/></span>{title}</h2>
            <p><b>"This secret is shown once. "</b><span class="ink2">{note}</span></p>
            <div class="secret"><code class="mono">{secret.clone()}</code><CopyButton text=secret label="Copy"/></div>
            <dl class="once-lines">{lines.collect_view()}</dl>
            <div class="do"><button class="btn" type="button" on:click=move |_| state.clear()>"Close"</button></div>
        </section>
    }
    .into_any()
}
