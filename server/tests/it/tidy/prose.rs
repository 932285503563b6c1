//! Refuses words in prose that are not terms of the field; docs/glossary.md has the terms to use instead.

use std::path::{Path, PathBuf};

/// Files and folders to check. Markdown: everything but code blocks and code spans. Rust: comments, and sentences in strings
/// (texts of pages, help, logs, errors). Other text files: everything.
const ROOTS: [&str; 13] = [
    "README.md",
    "Cargo.toml",
    "Makefile",
    "deny.toml",
    "docs",
    "app",
    "server",
    "end2end",
    "migrations",
    "scripts",
    "style",
    ".ci",
    ".config",
];

/// Folders that are not checked: built or installed files, and this folder, which contains the banned words.
const SKIPPED: [&str; 5] = [
    "target",
    "node_modules",
    "python/site",
    "test-results",
    "tests/it/tidy",
];

const EXTENSIONS: [&str; 14] = [
    "css", "json", "md", "mjs", "patch", "php", "py", "rs", "sh", "sql", "toml", "ts", "yaml", "yml",
];

/// A string of fewer words is a name or a value, not a sentence.
const SENTENCE_WORDS_MIN: usize = 4;

const BANNED: [&str; 17] = [
    "told",
    "whoever",
    "somebody",
    "anew",
    "beside",
    "stands",
    "in line",
    "what came of",
    "is none",
    "for ever",
    "so many",
    "mend",
    "mends",
    "nobody",
    "anybody",
    "everybody",
    "lately",
];

#[test]
fn prose_has_no_banned_words() {
    // Every file below the roots; a phrase may also be wrapped over two lines.
    let found: Vec<String> = ROOTS.iter().flat_map(|root| banned_words_below(root)).collect();
    assert!(
        found.is_empty(),
        "words that docs/glossary.md replaces:\n{}",
        found.join("\n")
    );
}

#[test]
fn banned_words_are_found_with_their_line() {
    // A word in prose, a phrase over two lines, a code span, a code block, a longer word, Rust strings and code.
    let text = "Users are Told.\nThey wait in\nline. `told`\n```\ntold\n```\nrecommend amendments\n";
    assert_eq!(banned_words(&markdown(text)), [(1, "told"), (2, "in line")]);
    let code = "let told = \"whoever\"; // somebody\n/// stands\nfn mend() { \"a url http://h is told so\" }\n\
        let text = \"two lines \\\n with nobody in them\"; \"told\"\n";
    assert_eq!(
        banned_words(&rust(code)),
        [(1, "somebody"), (2, "stands"), (3, "told"), (5, "nobody")]
    );
}

/// Each with its file and line.
fn banned_words_below(path: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    collect_files(&root.join(path), &mut files);
    files.sort();
    assert!(!files.is_empty(), "{path} has no files");
    let mut found = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let prose = match extension(file) {
            Some("rs") => rust(&text),
            Some("md") => markdown(&text),
            _ => text.lines().map(str::to_owned).collect(),
        };
        let name = file.strip_prefix(&root).unwrap().display();
        let hits = banned_words(&prose).into_iter();
        found.extend(hits.map(|(line, word)| format!("{name}:{line}: {word}")));
    }
    found
}

fn extension(file: &Path) -> Option<&str> {
    file.extension()?.to_str()
}

fn collect_files(path: &Path, files: &mut Vec<PathBuf>) {
    if SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
        return;
    }
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            collect_files(&entry.unwrap().path(), files);
        }
        return;
    }
    // A file without an extension is a script.
    let is_text = extension(path).is_none_or(|ending| EXTENSIONS.contains(&ending));
    let is_lock = path.ends_with("package-lock.json");
    if is_text && !is_lock {
        files.push(path.to_owned());
    }
}

/// Line by line, code replaced by nothing, so that line numbers stay.
fn markdown(text: &str) -> Vec<String> {
    let mut is_code = false;
    let lines = text.lines().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if is_code || is_fence {
            return String::new();
        }
        without_code_spans(line)
    });
    lines.collect()
}

/// Comments and sentences in strings, without code spans.
fn rust(text: &str) -> Vec<String> {
    let mut continued = None;
    let prose = text.lines().map(|line| rust_line(line, &mut continued));
    prose.map(|line| without_code_spans(&line)).collect()
}

fn without_code_spans(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Prose of a line. `continued`: the beginning of a string that goes on in this line; set if it goes on in the next one.
fn rust_line(line: &str, continued: &mut Option<String>) -> String {
    let mut is_string = continued.is_some();
    let mut string = continued.take().unwrap_or_default();
    let mut prose = String::new();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_string => {
                if string.split_whitespace().count() >= SENTENCE_WORDS_MIN {
                    prose.push_str(&string);
                    prose.push_str(" . ");
                }
                string.clear();
                is_string = false;
            }
            '"' => is_string = true,
            // A variable that is put into the text.
            '{' if is_string => {
                string.push(' ');
                chars.by_ref().find(|c| *c == '}');
            }
            '\\' if is_string => {
                chars.next();
                string.push(' ');
            }
            // A quotation mark as a character.
            '\'' if !is_string && chars.peek() == Some(&'"') => drop(chars.next()),
            '/' if !is_string && chars.peek() == Some(&'/') => {
                prose.extend(chars);
                return prose;
            }
            c if is_string => string.push(c),
            _ => {}
        }
    }
    if is_string && line.ends_with('\\') {
        *continued = Some(string);
    }
    prose
}

/// Lines are counted from 1; a phrase is found on the line where it begins.
fn banned_words(prose: &[String]) -> Vec<(usize, &'static str)> {
    let words: Vec<(usize, String)> = prose
        .iter()
        .enumerate()
        .flat_map(|(at, line)| {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
            let words = words.filter(|word| !word.is_empty());
            words.map(move |word| (at + 1, word.to_lowercase()))
        })
        .collect();
    let mut found = Vec::new();
    for (at, (line, _)) in words.iter().enumerate() {
        for banned in BANNED {
            let is_here = banned
                .split(' ')
                .enumerate()
                .all(|(offset, part)| words.get(at + offset).is_some_and(|(_, word)| word == part));
            if is_here {
                found.push((*line, banned));
            }
        }
    }
    found
}
