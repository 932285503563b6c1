//! The checklists of docs/contributing.md name existing files, and the lists for a page and for a column stay short.

use std::collections::BTreeSet;
use std::path::Path;

use super::rust_files;

/// A code span that begins with one of these folders is a path from the root. Any other span that ends in `.rs` must be the end
/// of the path of some Rust file.
const FOLDERS: [&str; 7] = [
    "app",
    "docs",
    "end2end",
    "migrations",
    "scripts",
    "server",
    "style",
];

/// Limit of files that a new page or a new column needs, without tests.
const FILES_MAX: usize = 6;

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn contributing() -> String {
    std::fs::read_to_string(root().join("docs/contributing.md")).unwrap()
}

fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn is_path(span: &str) -> bool {
    let first = span.split_once('/').map(|(first, _)| first);
    first.is_some_and(|first| FOLDERS.contains(&first)) && !span.contains(' ')
}

/// The part of a path before its first placeholder. Placeholders are in capitals: `KIND`, `PAGE`, `TOPIC`.
fn existing_part(path: &str) -> String {
    let is_fixed = |part: &&str| !part.contains(|c: char| c.is_ascii_uppercase());
    let parts: Vec<&str> = path.split('/').take_while(is_fixed).collect();
    parts.join("/")
}

#[test]
fn files_of_the_checklists_exist() {
    let text = contributing();
    let mut rust = Vec::new();
    for folder in ["app", "server"] {
        rust_files(&root().join(folder), &mut rust);
    }
    let (mut checked, mut missing) = (0, Vec::new());
    for span in code_spans(&text) {
        let is_there = if is_path(span) {
            root().join(existing_part(span)).exists()
        } else if span.ends_with(".rs") && existing_part(span) == span {
            rust.iter().any(|file| file.ends_with(span))
        } else {
            continue;
        };
        checked += 1;
        if !is_there {
            missing.push(span);
        }
    }
    assert!(
        checked > 60 && missing.is_empty(),
        "{checked} paths, missing: {missing:?}"
    );
}

#[test]
fn a_page_and_a_column_need_at_most_six_files() {
    let text = contributing();
    for heading in ["## Add a page\n", "## Add a list column\n"] {
        let (_, section) = text.split_once(heading).unwrap();
        let section = section.split("\n## ").next().unwrap();
        // Only the numbered steps: the paragraph after them names the tests.
        let (_, steps) = section.split_once("\n1. ").unwrap();
        let steps = steps.split("\n\n").next().unwrap();
        let files: BTreeSet<&str> = code_spans(steps).filter(|span| is_path(span)).collect();
        assert!((2..=FILES_MAX).contains(&files.len()), "{heading}{files:#?}");
    }
}
