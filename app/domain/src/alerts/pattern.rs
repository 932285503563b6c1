//! Patterns with `*`: for owners over the whole name, for resources over their leading
//! segments. A `*` never crosses a segment boundary of a resource. There is no other wildcard:
//! filters are data, not an expression language.

use crate::lease;
use crate::name_tree::{boundary, is_separator};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pattern(String);

impl Pattern {
    /// # Errors
    /// A clause with the reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let most = super::limits::PATTERN_CHARS_MAX;
        if text.chars().count() > most {
            return Err(format!("has more than {most} characters"));
        }
        if text.chars().any(char::is_control) {
            return Err("has a control character".to_owned());
        }
        if text.matches('*').count() > 8 {
            return Err("has more than eight *".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Empty: matches everything.
    pub fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    /// Literal beginning of every name that it [covers](Self::covers).
    pub fn literal(&self) -> &str {
        let end = self.0.find('*').unwrap_or(self.0.len());
        &self.0[..end]
    }

    /// Whether every name that it [covers](Self::covers) is in the scope. A `*` must follow a
    /// whole segment of the scope: `tenant_1*` also covers `tenant_12`.
    pub fn stays_within(&self, scope: &lease::Scope) -> bool {
        let literal = match self.0.find('*') {
            Some(star) => &self.0[..boundary(&self.0.as_bytes()[..star])],
            None => self.0.as_str(),
        };
        scope.is_everything() || (!literal.is_empty() && scope.covers(literal))
    }

    /// Matches the whole text, for example the name of an owner.
    pub fn matches(&self, text: &str) -> bool {
        self.is_everything() || matches_from(self.0.as_bytes(), text.as_bytes(), &|_| true, &<[u8]>::is_empty)
    }

    /// Matches the beginning of a resource's name on whole segments: `jobs/b*` covers
    /// `jobs/billing` and `jobs/billing/1`.
    pub fn covers(&self, name: &[u8]) -> bool {
        let pattern = self.0.as_bytes();
        let is_open = pattern.last().is_some_and(|byte| is_separator(*byte));
        let ends = |rest: &[u8]| is_open || rest.first().is_none_or(|byte| is_separator(*byte));
        self.is_everything() || matches_from(pattern, name, &|byte| !is_separator(byte), &ends)
    }
}

/// Whether `text` begins with the pattern such that `ends` accepts the rest. A `*` matches
/// bytes that `is_in_wildcard` accepts.
fn matches_from(
    pattern: &[u8],
    text: &[u8],
    is_in_wildcard: &dyn Fn(u8) -> bool,
    ends: &dyn Fn(&[u8]) -> bool,
) -> bool {
    match pattern.split_first() {
        None => ends(text),
        Some((b'*', rest)) => {
            let reach = text.iter().take_while(|byte| is_in_wildcard(**byte)).count();
            (0..=reach).any(|consumed| matches_from(rest, &text[consumed..], is_in_wildcard, ends))
        }
        Some((byte, rest)) => text
            .split_first()
            .is_some_and(|(first, tail)| first == byte && matches_from(rest, tail, is_in_wildcard, ends)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_whole_segments_and_a_star_stays_in_one() {
        // Literal, with wildcards, open at the end; each with near misses.
        let table = [
            ("jobs", "jobs", true),
            ("jobs", "jobs/1", true),
            ("jobs", "jobs2", false),
            ("jobs/", "jobs/1", true),
            ("tenant_*:billing-*", "tenant_1:billing-close:2026", true),
            ("tenant_*:billing-*", "tenant_1:x:billing-close", false),
            ("*", "a/b", true),
            ("a*c", "abd", false),
            ("", "anything", true),
        ];
        for (pattern, name, covers) in table {
            let pattern = Pattern::parse(pattern).unwrap();
            assert_eq!(pattern.covers(name.as_bytes()), covers, "{pattern:?} {name}");
        }
        let owner = Pattern::parse("worker-3*").unwrap();
        assert!(owner.matches("worker-31:x") && !owner.matches("a-worker-3"));
        assert!(Pattern::parse("a\u{7}").is_err() && Pattern::parse("*********").is_err());
    }
}
