//! docs/security.md names a test for each control; each of them is there.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = include_str!("../../../../docs/security.md");

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules"].contains(&name.as_str()) {
            files(&path, found);
        } else if name.ends_with(".rs") || name.ends_with(".ts") {
            found.push(path);
        }
    }
}

/// Names of the tests in a file, in Rust or for the browser.
fn tests(text: &str) -> Vec<&str> {
    let mut before = "";
    let mut found = Vec::new();
    for line in text.lines() {
        let function = line.trim_start().trim_start_matches("async ").strip_prefix("fn ");
        if let Some((name, _)) = function.and_then(|rest| rest.split_once('('))
            && before.contains("test")
        {
            found.push(name);
        }
        // A macro that makes one test for each store: `on_both_stores!(name, |store| {`.
        if let Some((name, _)) = line
            .strip_prefix("on_")
            .and_then(|rest| rest.split_once("!(")?.1.split_once(','))
        {
            found.push(name);
        }
        if let Some((_, rest)) = line.split_once("test(\"") {
            found.extend(rest.split('"').next());
        }
        before = line;
    }
    found
}

#[test]
fn every_test_named_in_the_table_of_controls_exists() {
    // Each row `| control | tests |`: names in backticks, at least one a row, each a test of this repository.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut sources = Vec::new();
    for folder in ["app", "server", "end2end"] {
        files(&root.join(folder), &mut sources);
    }
    let texts: Vec<String> = sources
        .iter()
        .filter(|path| !path.ends_with("documented_controls.rs"))
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .collect();
    let existing: HashSet<&str> = texts.iter().flat_map(|text| tests(text)).collect();
    let (_, table) = DOCUMENT.split_once("| Control | Tests |").unwrap();
    let rows: Vec<&str> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() >= 30, "{} rows", rows.len());
    for row in rows {
        let tests = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row}");
        for name in names {
            assert!(existing.contains(name), "there is no test {name}");
        }
    }
}
