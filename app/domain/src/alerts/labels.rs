//! Labels of an alert: they identify it, silences match them, receivers route by them. Never a
//! value and never a time.

use std::collections::BTreeMap;

use super::evaluate::{Active, Subject};
use super::rule::Rule;
use crate::fnv1a::fnv1a_64;
use crate::history::template::template;

pub type Labels = BTreeMap<String, String>;

/// Labels that a silence may match.
pub const LABELS: [&str; 6] = ["rule", "severity", "backend", "prefix", "resource", "owner"];

pub fn labels(rule: &Rule, alert: &Active) -> Labels {
    let mut labels = Labels::new();
    let mut set = |name: &str, value: String| {
        labels.insert(name.to_owned(), value);
    };
    set("alertname", rule.name.clone());
    set("rule", rule.id.as_str().to_owned());
    set("severity", rule.severity.as_str().to_owned());
    set("backend", alert.subject.backend().to_string());
    match &alert.subject {
        Subject::Lock(lock) => {
            set("resource", lock.resource.text());
            set("source", lock.source.to_string());
            set("prefix", template(lock.resource.as_bytes()));
        }
        Subject::Prefix { prefix, .. } => set("prefix", prefix.clone()),
        Subject::Backend(_) => {}
    }
    if let Some(owner) = &alert.owner {
        set("owner", owner.clone());
    }
    labels
}

/// Sixteen hex digits (FNV-1a): equal labels have equal fingerprints.
pub fn fingerprint(labels: &Labels) -> String {
    let parts = labels.iter().flat_map(|(name, value)| [name, value]);
    // 0xff occurs in no UTF-8 text, so it separates the parts.
    let hash = fnv1a_64(parts.flat_map(|part| part.bytes().chain([0xff])));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_separate_label_names_from_values() {
        // The same characters split differently between name and value are different labels.
        let labels = |name: &str, value: &str| Labels::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(fingerprint(&labels("a", "bc")), fingerprint(&labels("a", "bc")));
        assert_ne!(fingerprint(&labels("a", "bc")), fingerprint(&labels("ab", "c")));
        assert_eq!(fingerprint(&Labels::new()).len(), 16);
    }
}
