//! Text from backends, clients and addresses tries to add elements to every page.
//!
//! Two consoles are filled alike, one with hostile text, the other with the same text without the characters of markup.
//! Each page is parsed as a browser parses it: both have the same elements with the same attributes.

mod hostile_console;
mod pages;
mod servers;

use std::cell::{Cell, RefCell};

use crate::support::html::Html;
use hostile_console::{HostileConsole, PageResponse};
use pages::{Ask, Shows, pages};
use testkit::eventually;

/// Breaks out of every context of a page: attributes, `<title>`, scripts, text areas, comments.
/// At most 59 bytes, so that Postgres keeps it whole as an application name.
const HOSTILE: &str = "\"'></title></script></textarea><x-added onx=1><!--&lt;";

/// Each character of markup as one without a meaning, so that both texts have one length, one order and the same segments.
fn harmless(text: &str) -> String {
    let plain = |c| match c {
        '<' => '(',
        '>' => ')',
        '"' | '\'' => '!',
        '&' => '+',
        other => other,
    };
    text.chars().map(plain).collect()
}

/// What is wrong with the hostile page by itself.
fn injected(answer: &PageResponse, shows: Shows) -> Option<String> {
    let html = Html::parse(&answer.text);
    let added = html
        .names
        .iter()
        .any(|name| name.contains("x-added") || name.contains("onx"));
    let comment = html.comments.iter().any(|text| text.contains("x-added"));
    if added || comment || answer.text.contains("<x-added") || (answer.is_html && html.titles.len() != 1) {
        return Some(format!("an element was added: {}", answer.text));
    }
    let is_shown = html.text.contains("x-added")
        || html
            .attribute_values
            .iter()
            .any(|(_, value)| value.contains("x-added"));
    (shows == Shows::Text && !is_shown).then(|| format!("the text did not reach the page: {}", answer.text))
}

/// The first element in which two pages differ, with its neighbours.
fn difference(a: &[String], b: &[String]) -> Option<String> {
    let at = (0..a.len().max(b.len())).find(|at| a.get(*at) != b.get(*at))?;
    let around =
        |all: &[String]| all[at.saturating_sub(3).min(all.len())..(at + 4).min(all.len())].join(" | ");
    Some(format!("element {at}: {} and {}", around(a), around(b)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_text_adds_an_element_to_any_page() {
    let plain = harmless(HOSTILE);
    assert_eq!((plain.len(), plain.contains("x-added")), (HOSTILE.len(), true));
    let (hostile, plain) = futures::join!(HostileConsole::start(HOSTILE), HostileConsole::start(&plain));
    let mut wrong = Vec::new();
    let both = pages(&hostile).into_iter().zip(pages(&plain));
    let mut count = 0;
    for (page, twin) in both {
        count += 1;
        let found = RefCell::new(None);
        // Pages may differ for a moment, because both consoles poll by themselves. A form that changed something is
        // sent once, so the charts of its answer are not compared.
        let is_repeatable = matches!(page.ask, Ask::Get(_));
        let is_refused = Cell::new(false);
        let compare = async || {
            let (answer, other) = (hostile.fetch(&page).await, plain.fetch(&twin).await);
            is_refused.set((400..500).contains(&answer.status) && answer.status == other.status);
            let elements = || {
                let (answer, other) = (Html::parse(&answer.text), Html::parse(&other.text));
                match is_repeatable {
                    true => difference(&answer.elements, &other.elements),
                    false => difference(&answer.outside_drawings, &other.outside_drawings),
                }
            };
            let status =
                || (answer.status != other.status).then(|| format!("{} and {}", answer.status, other.status));
            let broken = || {
                (answer.status >= 500 || !answer.is_html)
                    .then(|| format!("{}: {}", answer.status, answer.text))
            };
            let fault = injected(&answer, page.shows)
                .or_else(broken)
                .or_else(status)
                .or_else(elements);
            let is_fine = fault.is_none();
            found.replace(fault);
            is_fine
        };
        if compare().await {
            continue;
        }
        if is_repeatable || is_refused.get() {
            let again = tokio::time::timeout(std::time::Duration::from_secs(10), async {
                eventually("both pages are alike", &compare).await;
            });
            if again.await.is_ok() {
                continue;
            }
        }
        wrong.extend(found.take().map(|why| format!("{:?}: {why:.1500}", page.ask)));
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} pages:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
    assert!(count > 80, "{count} pages");
}
