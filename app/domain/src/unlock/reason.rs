//! Reason of a forced unlock, with minimum content for later readers.

use thiserror::Error;

use crate::escape;

/// Characters of a reason; leading, trailing and repeated white space does not count.
pub const REASON_CHARS_MIN: usize = 10;
pub const REASON_CHARS_MAX: usize = 500;
/// A reason needs letters, not only dots and dashes.
const LETTERS_MIN: usize = 5;

const _: () = assert!(LETTERS_MIN < REASON_CHARS_MIN && REASON_CHARS_MIN < REASON_CHARS_MAX);
// Up to four bytes per character: the lease service passes the reason to the evicted holder.
const _: () = assert!(REASON_CHARS_MAX * 4 <= crate::lease::limits::REASON_BYTES_MAX);

/// Stored as entered, with each run of white space as one space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlockReason(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum WeakReason {
    #[error("a reason is required: it is stored word for word in the audit log")]
    Empty,
    #[error("a reason has at least {REASON_CHARS_MIN} characters, and this has {0}")]
    Short(usize),
    #[error("a reason is made of words, and this is punctuation")]
    NoWords,
    #[error("a reason has at most {REASON_CHARS_MAX} characters, and this has {0}")]
    Long(usize),
    #[error("a reason has no characters that cannot be seen")]
    Hidden,
    #[error("break-glass needs a second reason, and this is the first one")]
    Same,
}

impl UnlockReason {
    /// # Errors
    /// See [`WeakReason`].
    pub fn parse(text: &str) -> Result<Self, WeakReason> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let joined = words.join(" ");
        if escape::visible(&joined) != joined {
            return Err(WeakReason::Hidden);
        }
        let chars = joined.chars().count();
        match chars {
            0 => Err(WeakReason::Empty),
            _ if joined.chars().filter(|c| c.is_alphanumeric()).count() < LETTERS_MIN.min(chars) => {
                Err(WeakReason::NoWords)
            }
            1..REASON_CHARS_MIN => Err(WeakReason::Short(chars)),
            REASON_CHARS_MIN..=REASON_CHARS_MAX => Ok(Self(joined)),
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
    fn reasons_without_content_are_rejected() {
        // Empty, several kinds of white space, punctuation, nine characters, padding, invisible
        // characters, too long.
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
            assert_eq!(UnlockReason::parse(weak), Err(why), "{weak:?}");
        }
        assert_eq!(
            UnlockReason::parse(&"word ".repeat(101)),
            Err(WeakReason::Long(504))
        );
    }

    #[test]
    fn reasons_in_any_script_keep_their_words() {
        // Ten characters are enough; line breaks of a form become spaces, as the lease service
        // requires.
        for good in [
            "INC-2291 ok",
            "stuck here",
            "死锁卡住了,负责人同意重启",
            "зависло с 03:00",
        ] {
            assert_eq!(UnlockReason::parse(good).unwrap().as_str(), good);
        }
        let joined = UnlockReason::parse(" stuck since 03:00,\r\nowner agrees ").unwrap();
        assert_eq!(joined.as_str(), "stuck since 03:00, owner agrees");
        assert!(crate::lease::names::operator_text("reason", joined.as_str()).is_ok());
        assert!(UnlockReason::parse(&"é".repeat(REASON_CHARS_MAX)).is_ok());
    }
}
