//! Numbers as shown on pages: those of [`domain::format`], with no line break between a number and its unit.
//!
//! In a drawing no line breaks, and a file or a command line has plain spaces: these use [`domain::format`].

use std::borrow::Cow;

use domain::escape::visible;
use domain::format;

pub use domain::format::count;

const NO_BREAK: &str = "\u{a0}";
/// Units of numbers in sentences.
const UNITS: [&str; 15] = [
    "%", "×", "ms", "s", "m", "h", "d", "byte", "bytes", "kB", "MB", "GB", "TB", "PB", "UTC",
];

pub fn duration(ms: i64) -> String {
    on_one_line(&format::duration(ms))
}

pub fn period(ms: i64) -> String {
    on_one_line(&format::period(ms))
}

pub fn age(ms: i64) -> String {
    on_one_line(&format::age(ms))
}

pub fn latency(ms: i64) -> String {
    on_one_line(&format::latency(ms))
}

pub fn offset(ms: i64) -> String {
    on_one_line(&format::offset(ms))
}

pub fn bytes(number: u64) -> String {
    on_one_line(&format::bytes(number))
}

/// More words than the first may be on the next line.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format::counted(number, one, many).replacen(' ', NO_BREAK, 1)
}

fn on_one_line(number: &str) -> String {
    number.replace(' ', NO_BREAK)
}

/// A sentence of the console or of a backend, with hidden characters shown and its numbers next to their units.
pub fn prose(text: &str) -> String {
    unbroken(&visible(text)).into_owned()
}

/// Numbers of a text next to their units: `41 m 08 s`, `80 %`, `2026-03-01 03:12:41 UTC`.
pub fn unbroken(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    let mut words = text.split(' ');
    let mut before = words.next().unwrap_or_default();
    let mut out = before.to_owned();
    let mut is_unit = false;
    for word in words {
        let is_next_part = is_unit && UNITS.contains(&before) && starts_with_digit(word);
        is_unit = ends_with_digit(before) && is_unit_of_number(word);
        let is_time = is_date(before) && starts_with_digit(word);
        out.push_str(if is_next_part || is_unit || is_time {
            NO_BREAK
        } else {
            " "
        });
        out.push_str(word);
        before = word;
    }
    Cow::Owned(out)
}

fn starts_with_digit(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_digit())
}

fn ends_with_digit(word: &str) -> bool {
    word.ends_with(|last: char| last.is_ascii_digit())
}

/// The end of a clause may follow.
fn is_unit_of_number(word: &str) -> bool {
    let unit = word.trim_end_matches(['.', ',', ';', ':', ')', '?', '!']);
    UNITS.contains(&unit)
}

/// `2026-03-01`.
fn is_date(word: &str) -> bool {
    let mut parts = word.split('-').map(str::len);
    ends_with_digit(word)
        && [parts.next(), parts.next(), parts.next(), parts.next()] == [Some(4), Some(2), Some(2), None]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks that are left, as `|`.
    fn lines(text: &str) -> String {
        text.replace(' ', "|").replace(NO_BREAK, " ")
    }

    #[test]
    fn a_number_and_its_unit_share_a_line() {
        assert_eq!(lines(&duration(2_468_000)), "41 m 08 s");
        assert_eq!(lines(&latency(0)), "< 1 ms");
        assert_eq!(
            lines(&counted(2, "dead letter", "dead letters")),
            "2 dead|letters"
        );
    }

    #[test]
    fn numbers_in_a_sentence_share_a_line_with_their_units() {
        for (text, shown) in [
            (
                "Held for 41 m 08 s, 3 times its p95 of 27.0 s.",
                "Held|for|41 m 08 s,|3|times|its|p95|of|27.0 s.",
            ),
            (
                "free since 2026-03-01 03:12:41 UTC (80 %)",
                "free|since|2026-03-01 03:12:41 UTC|(80 %)",
            ),
            // Words that are no numbers or units; two numbers; spaces of a name stay.
            ("token 40 sent by w 7  9 s", "token|40|sent|by|w|7||9 s"),
            ("", ""),
        ] {
            assert_eq!(lines(&unbroken(text)), shown);
        }
        assert_eq!(prose("5\u{a0}s"), "5\\u{a0}s");
    }
}
