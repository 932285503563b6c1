//! A sleep in a test is an exception: its comment says why there is no event to wait for.

use std::path::Path;

use super::rust_files;

/// Real faults on real servers, whose length is drawn at random: time itself is the fault there.
const EXEMPT: &str = "linearizability";
/// A comment counts on the line of the sleep and on this number of lines above it.
const LINES_ABOVE: usize = 2;

#[test]
fn sleeps_in_tests_state_their_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    let mut found = Vec::new();
    for file in &files {
        let is_exempt = file.components().any(|part| part.as_os_str() == EXEMPT);
        if is_exempt || file.ends_with("tidy/sleeps.rs") {
            continue;
        }
        let text = std::fs::read_to_string(file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let unexplained = (0..lines.len()).filter(|at| is_sleep(lines[*at]) && !is_explained(&lines, *at));
        found.extend(unexplained.map(|at| format!("{}:{}", file.display(), at + 1)));
    }
    assert!(found.is_empty(), "sleeps without a reason:\n{}", found.join("\n"));
}

/// A call, outside of strings: those are SQL and scripts.
fn is_sleep(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let is_call = |(at, _): (usize, &str)| {
        let before = code[..at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '.')
    };
    !code.contains('"') && code.match_indices("sleep(").any(is_call)
}

fn is_explained(lines: &[&str], at: usize) -> bool {
    lines[at.saturating_sub(LINES_ABOVE)..=at]
        .iter()
        .any(|line| line.contains("//"))
}
