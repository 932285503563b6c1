//! Template of a name: the name without its ids, so that locks of one kind are counted
//! together.
//!
//! `tenant_123:billing-close:2026-04` becomes `tenant_*:billing-close:*`. Runs of digits,
//! dates, UUIDs and long hexadecimal or mixed words are ids; other segments stay. A template is
//! its own template.

use crate::escape;
use crate::name_tree::boundary;

/// Characters of a template; a longer one is truncated.
pub const TEMPLATE_MAX: usize = 96;
/// A word of hexadecimal digits, or of letters and digits mixed, is an id from this length on.
const HEX_MIN: usize = 8;
const MIXED_MIN: usize = 16;

const UUID_LEN: usize = 36;
const STAR: char = '*';

/// From a raw name.
pub fn template(name: &[u8]) -> String {
    from_text(&escape::text(name))
}

/// From a text form.
pub fn from_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(TEMPLATE_MAX));
    let mut rest = text;
    // Text that will be truncated need not be read.
    while let Some(first) = rest.chars().next().filter(|_| out.len() <= TEMPLATE_MAX * 4) {
        let consumed = match (uuid_len(rest), word_len(rest)) {
            (Some(len), _) => {
                out.push(STAR);
                len
            }
            (None, 0) => {
                out.push(if first.is_control() {
                    char::REPLACEMENT_CHARACTER
                } else {
                    first
                });
                first.len_utf8()
            }
            (None, len) => {
                push_word(&mut out, &rest[..len]);
                len
            }
        };
        fold_stars(&mut out);
        rest = &rest[consumed..];
    }
    cut(out)
}

/// Common beginning of all names of a template, up to the last separator before its first id;
/// the whole template without ids. `None` if the names share no beginning.
pub fn literal(template: &str) -> Option<&str> {
    if template.contains(' ') {
        return None;
    }
    let Some(star) = template.find(STAR) else {
        // A truncated template may continue in any way.
        return (template.chars().count() < TEMPLATE_MAX).then_some(template);
    };
    let end = boundary(&template.as_bytes()[..star]);
    (end > 0).then(|| &template[..end])
}

/// Letters, digits and stars in one go: an id never crosses another character.
fn word_len(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_alphanumeric() && c != STAR)
        .unwrap_or(text.len())
}

fn uuid_len(text: &str) -> Option<usize> {
    let bytes = text.as_bytes().get(..UUID_LEN)?;
    let fits = |(place, byte): (usize, &u8)| match place {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    bytes.iter().enumerate().all(fits).then_some(UUID_LEN)
}

fn push_word(out: &mut String, word: &str) {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let is_number = |b: u8| b.is_ascii_digit() || b == STAR as u8;
    let is_long =
        word.bytes().all(|b| b.is_ascii_hexdigit()) && word.len() >= HEX_MIN || word.len() >= MIXED_MIN;
    let is_time =
        word.bytes().all(|b| is_number(b) || matches!(b, b'T' | b'Z')) && word.bytes().any(is_number);
    if digits > 0 && is_long || is_time {
        out.push(STAR);
        return;
    }
    let mut in_number = false;
    for c in word.chars() {
        let was_in_number = std::mem::replace(&mut in_number, c.is_ascii_digit() || c == STAR);
        match (was_in_number, in_number) {
            (true, true) => {}
            (false, true) => out.push(STAR),
            (_, false) => out.push(c),
        }
    }
}

/// `*-*` at the end is one id: a date, a time, a range.
fn fold_stars(out: &mut String) {
    let Some(head) = out.strip_suffix(STAR) else {
        return;
    };
    let Some(head) = head.strip_suffix(['-', '_', '.', '+']) else {
        return;
    };
    let Some(before) = head.strip_suffix(STAR) else {
        return;
    };
    let stands_alone = before
        .chars()
        .next_back()
        .is_none_or(|c| !c.is_ascii_alphanumeric() && c != STAR);
    if stands_alone {
        out.truncate(head.len());
    }
}

fn cut(mut out: String) -> String {
    if out.is_empty() {
        return "(no name)".to_owned();
    }
    if let Some((at, _)) = out.char_indices().nth(TEMPLATE_MAX) {
        out.truncate(at);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_are_collapsed_and_words_stay() {
        // Typical names, each with its template.
        let cases = [
            ("tenant_123:ledger-post", "tenant_*:ledger-post"),
            ("tenant_7:billing-close:2026-04", "tenant_*:billing-close:*"),
            (
                "jobs/billing-close/2026-04-01T03:12:41Z",
                "jobs/billing-close/*:*:*",
            ),
            ("checkout:settlement:9f86d081884c7d65", "checkout:settlement:*"),
            ("order/123e4567-e89b-12d3-a456-426614174000/pay", "order/*/pay"),
            ("warehouse/eu-1/reindex", "warehouse/eu-*/reindex"),
            ("lock:cart:01ARZ3NDEKTSV4RRFFQ69G5FAV", "lock:cart:*"),
            ("nightly", "nightly"),
            ("facade:decade", "facade:decade"),
            ("42", "*"),
            ("", "(no name)"),
        ];
        for (name, expected) in cases {
            assert_eq!(template(name.as_bytes()), expected, "{name}");
        }
    }

    proptest! {
        #[test]
        fn a_template_is_short_has_no_digit_and_is_its_own(name in "[a-z0-9:/_.\\-]{0,60}") {
            let once = template(name.as_bytes());
            prop_assert!(once.chars().count() <= TEMPLATE_MAX);
            prop_assert!(!once.contains(|c: char| c.is_ascii_digit()));
            prop_assert_eq!(from_text(&once), once);
        }

        #[test]
        fn names_that_differ_in_a_number_alone_share_a_template(head in "[a-z]{1,8}:", one in 0u64..1_000_000, other in 0u64..1_000_000, tail in "(:[g-z]{1,8})?") {
            let name = |number: u64| template(format!("{head}{number}{tail}").as_bytes());
            prop_assert_eq!(name(one), name(other));
        }

        #[test]
        fn any_bytes_have_a_template(name in proptest::collection::vec(any::<u8>(), 0..300)) {
            // No panic, and not longer than the limit.
            prop_assert!(template(&name).chars().count() <= TEMPLATE_MAX);
        }
    }
}
