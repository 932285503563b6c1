//! Why somebody breaks a lock, in words that tell the next reader something.

use thiserror::Error;

use crate::escape;

/// Characters of a reason, white space at its ends and repeated inside not counted.
pub const REASON_CHARS_MIN: usize = 10;
pub const REASON_CHARS_MAX: usize = 500;
/// Dots and dashes are no words.
const LETTERS_MIN: usize = 5;

const _: () = assert!(LETTERS_MIN < REASON_CHARS_MIN && REASON_CHARS_MIN < REASON_CHARS_MAX);
// Four bytes each at most: the lease service tells it to the evicted holder.
const _: () = assert!(REASON_CHARS_MAX * 4 <= crate::lease::limits::REASON_BYTES_MAX);

/// Recorded word for word, but for white space: each run of it is one space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WeakReason {
    #[error("a reason is needed: it goes into the record, word for word")]
    Empty,
    #[error("a reason has at least {REASON_CHARS_MIN} characters, and this has {0}")]
    Short(usize),
    #[error("a reason is made of words, and this is punctuation")]
    NoWords,
    #[error("a reason has at most {REASON_CHARS_MAX} characters, and this has {0}")]
    Long(usize),
    #[error("a reason has no characters that cannot be seen")]
    Hidden,
    #[error("acting alone needs a second reason, and this is the first one")]
    Same,
}

impl Reason {
    /// # Errors
    /// See [`WeakReason`].
    pub fn parse(text: &str) -> Result<Self, WeakReason> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let told = words.join(" ");
        if escape::visible(&told) != told {
            return Err(WeakReason::Hidden);
        }
        let chars = told.chars().count();
        match chars {
            0 => Err(WeakReason::Empty),
            _ if told.chars().filter(|c| c.is_alphanumeric()).count() < LETTERS_MIN.min(chars) => {
                Err(WeakReason::NoWords)
            }
            1..REASON_CHARS_MIN => Err(WeakReason::Short(chars)),
            REASON_CHARS_MIN..=REASON_CHARS_MAX => Ok(Self(told)),
            _ => Err(WeakReason::Long(chars)),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_tells_something_or_is_none() {
        // Nothing, white space of several kinds, punctuation, nine characters, padding, what cannot be seen, too much.
        for (weak, why) in [
            ("", WeakReason::Empty),
            (" \t\r\n\u{a0}\u{3000}", WeakReason::Empty),
            ("..........", WeakReason::NoWords),
            ("!?!? -- ... !!!", WeakReason::NoWords),
            ("a.........", WeakReason::NoWords),
            ("123456789", WeakReason::Short(9)),
            ("  stuck now \n", WeakReason::Short(9)),
            ("stuck          now", WeakReason::Short(9)),
            (
                "stuck\u{200b}\u{200b}\u{200b}\u{200b}\u{200b}",
                WeakReason::Hidden,
            ),
            ("stuck since \u{202e}03:00", WeakReason::Hidden),
        ] {
            assert_eq!(Reason::parse(weak), Err(why), "{weak:?}");
        }
        assert_eq!(Reason::parse(&"word ".repeat(101)), Err(WeakReason::Long(504)));
    }

    #[test]
    fn words_of_any_script_are_kept_with_white_space_made_plain() {
        // Ten characters are enough; line breaks of a form become spaces, which the lease service can tell.
        for good in [
            "INC-2291 ok",
            "stuck here",
            "死锁卡住了,负责人同意重启",
            "зависло с 03:00",
        ] {
            assert_eq!(Reason::parse(good).unwrap().as_str(), good);
        }
        let told = Reason::parse(" stuck since 03:00,\r\nowner agrees ").unwrap();
        assert_eq!(told.as_str(), "stuck since 03:00, owner agrees");
        assert!(crate::lease::names::words("reason", told.as_str()).is_ok());
        assert!(Reason::parse(&"é".repeat(REASON_CHARS_MAX)).is_ok());
    }
}
