//! The document around a form: the same head and style as every page, and no script but the one line that sets the
//! colours which somebody chose.

use leptos::prelude::*;

use crate::app::THEME;

/// Made on the server only.
pub fn document(title: &str, content: AnyView) -> String {
    let title = format!("{title} · Leasehold");
    let html = view! {
        <html lang="en">
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <script inner_html=THEME></script>
                <link rel="preload" href="/fonts/inter-latin.woff2" r#as="font" r#type="font/woff2" crossorigin=""/>
                <link rel="stylesheet" href="/pkg/leasehold.css"/>
                <link rel="icon" href="/favicon.svg" r#type="image/svg+xml"/>
                <title>{title}</title>
            </head>
            <body>
                <header class="bar">
                    <a class="brand" href="/">
                        <svg viewBox="0 0 16 16" aria-hidden="true"><path d="M1 3h14v3H1zM1 8.5h9v1.5H1zM1 12h5v1.5H1z" fill="currentColor"></path></svg>
                        "Leasehold"
                    </a>
                </header>
                <main id="main">{content}</main>
            </body>
        </html>
    };
    format!("<!DOCTYPE html>{}", html.to_html())
}

/// One field with its label, its help and, after a refusal, what is wrong with it.
pub struct Field {
    pub name: &'static str,
    pub label: &'static str,
    /// `text` or `password`.
    pub kind: &'static str,
    /// For password managers.
    pub autocomplete: &'static str,
    pub value: String,
    pub help: Option<&'static str>,
    pub fault: Option<String>,
}

impl Field {
    pub fn view(self) -> AnyView {
        let Self {
            name,
            label,
            kind,
            autocomplete,
            value,
            help,
            fault,
        } = self;
        let has_note = fault.is_some() || help.is_some();
        let described = has_note.then(|| format!("{name}-note"));
        let is_bad = fault.is_some().then_some("true");
        let note = match (fault, help) {
            (Some(fault), _) => view! { <p class="fault" id=described.clone()>{fault}</p> }.into_any(),
            (None, Some(help)) => view! { <p class="help" id=described.clone()>{help}</p> }.into_any(),
            (None, None) => ().into_any(),
        };
        view! {
            <div class="entry">
                <label for=name>{label}</label>
                <input id=name name=name r#type=kind autocomplete=autocomplete value=value required=true
                    aria-invalid=is_bad aria-describedby=described spellcheck="false" autocapitalize="none"/>
                {note}
            </div>
        }
        .into_any()
    }
}

/// What went wrong with the whole, said where a screen reader hears it first.
pub fn alert(text: Option<String>) -> AnyView {
    match text {
        Some(text) => view! { <p class="notice critical" role="alert">{text}</p> }.into_any(),
        None => ().into_any(),
    }
}
