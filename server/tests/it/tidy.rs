//! Rules for names and text that no compiler checks. Names of tests are short sentences.

mod checklists;
mod names;
mod prose;
mod sleeps;

use std::path::{Path, PathBuf};

/// Characters.
const NAME_LENGTH_MAX: usize = 60;

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The test or the function that this line begins.
fn function_name(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches("async ");
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

#[test]
fn test_names_have_at_most_60_characters() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["app", "server"] {
        rust_files(&root.join(folder), &mut files);
    }
    assert!(files.len() > 500, "{} files", files.len());
    let mut too_long = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let names = text.lines().filter_map(function_name);
        // Of tests that run on several stores.
        let in_macros = ["on_stores!(", "on_both_stores!(", "on_every_store!("]
            .into_iter()
            .flat_map(|call| text.split(call).skip(1))
            .filter_map(|rest| rest.split(',').next())
            .map(str::trim)
            .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        let long = names.chain(in_macros).filter(|name| name.len() > NAME_LENGTH_MAX);
        too_long.extend(long.map(|name| format!("{}: {name}", file.display())));
    }
    assert!(too_long.is_empty(), "{}", too_long.join("\n"));
}
