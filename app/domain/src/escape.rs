//! Text forms of names that need not be UTF-8, and of characters that are invisible or
//! misleading on a screen.
//!
//! [`text`] and [`parse`] are exact and reversible, for JSON and URLs; [`visible`] is for
//! display and shows hidden characters.

use std::borrow::Cow;

use crate::hex;

/// Valid UTF-8 is unchanged. In any other name each stray byte is `\xnn` and each backslash
/// `\\`.
pub fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(valid) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(valid);
    }
    let mut out = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c == '\\' {
                out.push_str("\\\\");
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    Cow::Owned(out)
}

/// Inverse of [`text`]. A text whose escapes would decode to valid UTF-8 was never escaped and
/// is returned unchanged.
pub fn parse(text: &str) -> Vec<u8> {
    match unescape(text) {
        Some(bytes) if std::str::from_utf8(&bytes).is_err() => bytes,
        _ => text.as_bytes().to_vec(),
    }
}

fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        if byte != b'\\' {
            out.push(byte);
            rest = tail;
            continue;
        }
        match tail {
            [b'\\', after @ ..] => {
                out.push(b'\\');
                rest = after;
            }
            [b'x', high, low, after @ ..] => {
                out.push((hex::value(*high)? << 4) | hex::value(*low)?);
                rest = after;
            }
            _ => return None,
        }
    }
    Some(out)
}

/// For display: control, bidirectional and zero-width characters, and look-alike spaces, become `\u{…}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            out.push_str(&format!("\\u{{{:x}}}", c as u32));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Characters that are not shown or change how their neighbours are shown: controls, white
/// space other than the plain space, default-ignorable characters of Unicode, annotations, and
/// the empty Braille pattern.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_form_is_reversible_for_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(parse(&text(&bytes)), bytes);
        }

        #[test]
        fn visible_form_holds_no_hidden_character(name in "\\PC*|[\\x00-\\x1f\\u{200b}-\\u{202e}a]{0,20}") {
            prop_assert!(!visible(&name).chars().any(is_hidden));
        }
    }

    #[test]
    fn utf8_names_with_backslashes_are_unchanged() {
        // A UTF-8 name that looks escaped is not unescaped.
        assert_eq!(text(br"a\x41"), r"a\x41");
        assert_eq!(parse(r"a\x41"), br"a\x41");
        assert_eq!(text(b"a\\\xff"), r"a\\\xff");
        assert_eq!(parse(r"a\\\xff"), b"a\\\xff");
    }
}
