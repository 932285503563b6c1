//! The documentation of alerts, as the console shows it: headings with anchors, paragraphs, lists and examples.

use leptos::prelude::*;

use crate::forms::chrome::{Chrome, Page, Place, page};

pub fn runbooks(chrome: &Chrome, text: &str) -> String {
    let mut blocks = Vec::new();
    let mut code: Option<String> = None;
    for line in text.lines().skip(1) {
        if line.starts_with("```") {
            match code.take() {
                Some(text) => {
                    blocks.push(view! { <pre class="doc-pre" tabindex="0">{text}</pre> }.into_any())
                }
                None => code = Some(String::new()),
            }
        } else if let Some(code) = &mut code {
            code.push_str(line);
            code.push('\n');
        } else if let Some(title) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            let id = title
                .split_whitespace()
                .next()
                .unwrap_or_default()
                .trim_matches('`')
                .to_owned();
            blocks.push(view! { <h2 id=id>{title.replace('`', "")}</h2> }.into_any());
        } else if line.starts_with('|') {
            blocks.push(
                view! { <p class="mono small">{line.trim_matches('|').replace('|', "  ")}</p> }.into_any(),
            );
        } else if !line.is_empty() {
            blocks.push(view! { <p>{line.replace(['`', '*'], "")}</p> }.into_any());
        }
    }
    let chrome = Chrome {
        place: Place::Alerts,
        ..chrome.clone()
    };
    page(
        &chrome,
        Page {
            title: "Alerts and what to do".to_owned(),
            lead: None,
            content: view! { <article class="doc">{blocks.collect_view()}</article> }.into_any(),
        },
    )
}
