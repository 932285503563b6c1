//! The JSON form of a lock's value: `{"ownerId": …, "leaseId": …, "fencingToken": …}`. Pure;
//! allocates only to unescape text.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Fields of such a value; others are ignored.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct JsonLock<'a> {
    #[serde(borrow)]
    pub(super) owner_id: Word<'a>,
    #[serde(borrow, default)]
    pub(super) lease_id: Option<Word<'a>>,
    #[serde(default)]
    pub(super) fencing_token: Option<Token>,
}

/// `None`: the value has another form and is a secret.
pub(super) fn parse(value: &[u8]) -> Option<JsonLock<'_>> {
    let first = value.iter().find(|byte| !byte.is_ascii_whitespace())?;
    if *first != b'{' {
        return None;
    }
    let lock: JsonLock<'_> = serde_json::from_slice(value).ok()?;
    (!lock.owner_id.0.is_empty()).then_some(lock)
}

/// A text, or a number written as one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Word<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Word<'a> {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Word<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a number")
            }
            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Word(Cow::Borrowed(text)))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Word(Cow::Owned(text.to_owned())))
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Word(Cow::Owned(number.to_string())))
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
                Ok(Word(Cow::Owned(number.to_string())))
            }
        }
        input.deserialize_any(Either)
    }
}

/// A fencing token: a number, or a text of digits, because JavaScript's numbers end at 2^53.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token(pub(super) u64);

impl<'de> Deserialize<'de> for Token {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let word = Word::deserialize(input)?;
        word.0
            .parse()
            .map(Self)
            .map_err(|_| D::Error::custom("not a fencing token"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_lease_and_token_are_read_as_texts_or_numbers() {
        // Values written by clients of several languages.
        let lock =
            parse(br#" {"ownerId":"w-1","leaseId":17,"fencingToken":"9007199254740993","x":{"y":[1]}}"#)
                .unwrap();
        assert_eq!(lock.owner_id.0, "w-1");
        assert_eq!(lock.lease_id.unwrap().0, "17");
        assert_eq!(lock.fencing_token, Some(Token(9_007_199_254_740_993)));
        assert_eq!(parse(br#"{"ownerId":"a\u0062"}"#).unwrap().owner_id.0, "ab");
        assert_eq!(
            parse(br#"{"ownerId":"a","leaseId":null}"#).unwrap().lease_id,
            None
        );
    }

    #[test]
    fn other_values_are_secrets() {
        // A value of a similar form must not be shown.
        for value in [
            "",
            "{",
            "{}",
            "secret",
            "[1]",
            r#"{"ownerId":""}"#,
            r#"{"ownerId":["a"]}"#,
            r#"{"leaseId":"a"}"#,
            r#"{"ownerId":"a","ownerId":"b"}"#,
            r#"{"ownerId":"a","fencingToken":-1}"#,
            r#"{"ownerId":"a"} x"#,
        ] {
            assert_eq!(parse(value.as_bytes()), None, "{value}");
        }
        assert_eq!(parse(b"{\"ownerId\":\"\xff\"}"), None);
    }
}
