//! HTML document of a server page: the head and style of every page, with the theme script
//! only.

use leptos::prelude::*;

use crate::app::{SPRITE, THEME};

/// The product name and one form. Rendered on the server only.
pub fn document(title: &str, content: AnyView) -> String {
    let title = format!("{title} · Leasehold");
    let html = view! {
        <html lang="en">
            <head>
                <meta charset="utf-8"/>
                <meta name="viewport" content="width=device-width, initial-scale=1"/>
                <meta name="color-scheme" content="light dark"/>
                <meta name="referrer" content="same-origin"/>
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
                <svg class="sprite" aria-hidden="true" inner_html=SPRITE></svg>
            </body>
        </html>
    };
    // The framework's text end marker would become part of the title.
    let html = html.to_html().replacen("<!></title>", "</title>", 1);
    format!("<!DOCTYPE html>{html}")
}
