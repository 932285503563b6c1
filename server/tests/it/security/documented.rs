//! docs/security.md names a test for each control; each of them is there.

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

/// Whether this line begins a test of this name, in Rust or for the browser.
fn begins(line: &str, name: &str) -> bool {
    let rust = line.trim_start().trim_start_matches("async ");
    rust.starts_with(&format!("fn {name}(")) || line.contains(&format!("test(\"{name}\""))
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
        .filter(|path| !path.ends_with("documented.rs"))
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .collect();
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
            let mut before = "";
            let is_there = texts.iter().flat_map(|text| text.lines()).any(|line| {
                let is_test = begins(line, name) && (before.contains("test") || line.contains("test("));
                before = line;
                is_test
            });
            assert!(is_there, "there is no test {name}");
        }
    }
}
