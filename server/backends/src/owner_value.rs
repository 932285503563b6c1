//! The owner in a value that a client wrote: its `ownerId` in JSON, or its text. Shared by the
//! adapters whose clients write free values. Pure.

use std::borrow::Cow;

use domain::escape;
use domain::hex;
use domain::limits::OWNER_CHARS_MAX;
use domain::names::OwnerId;
use serde::Deserialize;

/// Longest value that is read as JSON, in bytes.
const JSON_BYTES_MAX: usize = 64 * 1024;

#[derive(Deserialize)]
struct JsonOwner<'a> {
    #[serde(borrow, rename = "ownerId")]
    owner_id: Cow<'a, str>,
}

/// `ownerId` of a JSON object; `None` without one.
pub(crate) fn json_owner(value: &[u8]) -> Option<OwnerId> {
    if value.first() != Some(&b'{') || value.len() > JSON_BYTES_MAX {
        return None;
    }
    let JsonOwner { owner_id } = serde_json::from_slice(value).ok()?;
    (!owner_id.is_empty()).then(|| OwnerId::new(cut(&owner_id, OWNER_CHARS_MAX)))
}

/// The owner in a value of printable text or JSON; `None` for an empty or a binary value.
pub(crate) fn printable_owner(value: &[u8]) -> Option<OwnerId> {
    json_owner(value).or_else(|| {
        let text = std::str::from_utf8(value).ok()?.trim();
        let is_printable = !text.is_empty() && !text.chars().any(char::is_control);
        is_printable.then(|| OwnerId::new(cut(text, OWNER_CHARS_MAX)))
    })
}

/// Text form of a value of any bytes, as long as an owner may be: bytes that are no text are in
/// hexadecimal.
pub(crate) fn text(value: &[u8]) -> String {
    // Four bytes per character at most: enough of the value for the characters shown.
    let head = &value[..value.len().min(OWNER_CHARS_MAX * 4 + 4)];
    let text = match std::str::from_utf8(head) {
        Ok(text) => Cow::Borrowed(text),
        // The cut splits a character.
        Err(error) if error.error_len().is_none() && head.len() < value.len() => {
            escape::text(&head[..error.valid_up_to()])
        }
        Err(_) => Cow::Owned(format!("0x{}", hex::text(head))),
    };
    cut(&text, OWNER_CHARS_MAX).into_owned()
}

/// At most `chars` characters, the last one `…` if truncated.
pub(crate) fn cut(text: &str, chars: usize) -> Cow<'_, str> {
    if text.chars().nth(chars).is_none() {
        return Cow::Borrowed(text);
    }
    let mut shortened: String = text.chars().take(chars.saturating_sub(1)).collect();
    shortened.push('…');
    Cow::Owned(shortened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_printable_values_name_an_owner() {
        // Text, JSON with and without an owner, an empty value, control characters, bytes.
        let owner = |value: &[u8]| printable_owner(value).map(|owner| owner.as_str().to_owned());
        assert_eq!(owner(b"10.0.0.7\n").as_deref(), Some("10.0.0.7"));
        assert_eq!(owner(br#"{"ownerId":"w-1"}"#).as_deref(), Some("w-1"));
        assert_eq!(owner(br#"{"owner":1}"#).as_deref(), Some(r#"{"owner":1}"#));
        for none in [&b""[..], b" ", b"a\0b", b"\xac\xed\x00\x05"] {
            assert_eq!(owner(none), None, "{none:?}");
        }
    }

    #[test]
    fn an_owner_of_raw_bytes_is_in_hexadecimal() {
        // A random id of 4 bytes; text is unchanged; a long value is cut, within a character too.
        assert_eq!(text(b"\xff\xad\x00\x01"), "0xffad0001");
        assert_eq!(text("wörker".as_bytes()), "wörker");
        assert_eq!(text(&[0xff; 5_000]).chars().count(), OWNER_CHARS_MAX);
        assert!(text("ü".repeat(5_000).as_bytes()).starts_with("üü"));
    }
}
