//! The pages as they are made, without a server.

use utoipa::OpenApi as _;

use super::*;
use crate::http::api;

#[test]
fn every_link_of_a_guide_to_a_page_of_ours_leads_to_a_page_and_an_anchor_that_are_there() {
    // All `/docs/…` links of all guides; anchors are looked for in the page that they lead to.
    let library = Library::new(&api::Description::openapi());
    assert!(library.guides.len() >= 15);
    for guide in &library.guides {
        for link in guide.html.split("href=\"").skip(1) {
            let link = link.split('"').next().unwrap();
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if path.is_empty() { &guide.path } else { path };
            if !path.starts_with("/docs") || path.starts_with("/docs/api/") {
                continue;
            }
            let there = library.guide(path);
            let Some(there) = there else { panic!("{}: {link}", guide.name) };
            // The index has headings of its own.
            let is_there = anchor.is_empty() || there.html.contains(&format!("id=\"{anchor}\""));
            assert!(is_there || path == "/docs", "{}: {link}", guide.name);
        }
    }
}

#[test]
fn every_document_is_in_the_index() {
    // A new file in docs/ that docs/README.md does not name is not found by anybody.
    let index = include_str!("../../../../docs/README.md");
    for guide in guides::all() {
        let file = format!("{}.md", guide.name);
        let nested = file
            .replacen("backends-", "backends/", 1)
            .replacen("deploy-", "deploy/", 1);
        let is_named = index.contains(&format!("({nested})")) || guide.name == guides::INDEX;
        assert!(is_named, "docs/README.md does not name {nested}");
    }
}

#[test]
fn every_condition_has_a_runbook_that_says_all_five_things() {
    // Its meaning, its urgency, where to look, what to do, how to silence it; and the default link of its rule leads there.
    let library = Library::new(&api::Description::openapi());
    let page = &library.guide("/docs/alerts").unwrap().html;
    for kind in domain::alerts::Kind::ALL {
        let heading = format!("<h2 id=\"{}\">", kind.wire());
        let Some((_, rest)) = page.split_once(&heading) else { panic!("{heading} is missing") };
        let section = rest.split("<h2").next().unwrap();
        for part in ["Means", "Urgency", "Look at", "Do", "Silence"] {
            assert!(section.contains(&format!("<strong>{part}</strong>")), "{heading} lacks {part}");
        }
    }
}
