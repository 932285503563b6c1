//! The pages as they are made, without a server.

use utoipa::OpenApi as _;

use super::*;
use crate::http::openapi;

#[test]
fn every_link_of_a_guide_has_its_page_and_anchor() {
    // All `/docs/…` links of all guides; anchors are looked for in the page that they lead to.
    let library = Library::new(&openapi::Description::openapi());
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
            let Some(there) = there else {
                panic!("{}: {link}", guide.name)
            };
            // The index has headings of its own.
            let is_there = anchor.is_empty() || there.html.contains(&format!("id=\"{anchor}\""));
            assert!(is_there || path == "/docs", "{}: {link}", guide.name);
        }
    }
}

#[test]
fn every_document_is_in_the_index() {
    // A file in docs/ that docs/README.md does not name has no link to it.
    let index = include_str!("../../../../../docs/README.md");
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
fn every_condition_has_a_complete_runbook() {
    // Its meaning, its urgency, where to look, what to do, how to silence it; and the default link of its rule leads there.
    let library = Library::new(&openapi::Description::openapi());
    let page = &library.guide("/docs/alerts").unwrap().html;
    for kind in domain::alerts::ConditionKind::ALL {
        let heading = format!("<h2 id=\"{}\">", kind.as_str());
        let Some((_, rest)) = page.split_once(&heading) else {
            panic!("{heading} is missing")
        };
        let section = rest.split("<h2").next().unwrap();
        for part in ["Means", "Urgency", "Look at", "Do", "Silence"] {
            assert!(
                section.contains(&format!("<strong>{part}</strong>")),
                "{heading} lacks {part}"
            );
        }
    }
}

#[test]
fn exactly_the_existing_problem_codes_are_documented() {
    // Codes as the sources write them, behind a status or as an arm of their own, against the rows of docs/problems.md.
    let sources = [
        include_str!("../../problem.rs"),
        include_str!("../../receivers.rs"),
        include_str!("../../alerts.rs"),
        include_str!("../../auth.rs"),
    ];
    let is_code = |word: &str| word.chars().all(|c| c.is_ascii_lowercase() || c == '_') && !word.is_empty();
    let mut known = std::collections::BTreeSet::new();
    for source in sources {
        let squeezed = source.split_whitespace().collect::<Vec<_>>().join(" ");
        for marker in ["conflict(\"", "later(\"", "plain(\"", "too_many(\""] {
            let found = squeezed
                .split(marker)
                .skip(1)
                .map(|rest| rest.split('"').next().unwrap_or_default());
            known.extend(found.filter(|word| is_code(word)).map(str::to_owned));
        }
        for rest in squeezed.split("StatusCode::").skip(1) {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_uppercase() || c == '_');
            let Some(rest) = rest.strip_prefix(", \"") else {
                continue;
            };
            known.extend(
                rest.split('"')
                    .next()
                    .filter(|word| is_code(word))
                    .map(str::to_owned),
            );
        }
    }
    let unlock = include_str!("../../../unlock/error.rs");
    let (_, codes) = unlock.split_once("const fn code(").unwrap();
    let codes = codes.split("\n    }\n").next().unwrap();
    known.extend(codes.split('"').skip(1).step_by(2).map(str::to_owned));
    // Not literals in problem.rs: the code of a lost lease is how it was lost.
    known.extend(["released", "expired"].map(str::to_owned));
    let rows = include_str!("../../../../../docs/problems.md").lines();
    let rows = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let documented: std::collections::BTreeSet<String> = rows.map(str::to_owned).collect();
    assert_eq!(documented, known);
}
