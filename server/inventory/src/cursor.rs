//! Keyset cursors: the end of the previous page as opaque text. Exact under concurrent changes
//! for the order by resource.
//!
//! **Invariant:** a cursor fits a query parameter. For a long name it has the beginning of the
//! name, and a digest that finds the lock again.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::query::{QueryError, Sort};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The last row of a page: its sort key, then the tie breakers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    #[serde(rename = "o")]
    pub(super) sort: Sort,
    #[serde(rename = "k")]
    pub(super) key: Option<i64>,
    /// The full name, or its first [`NAME_BYTES_MAX`] bytes.
    #[serde(rename = "n", with = "bytes")]
    pub(super) name: Vec<u8>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    pub(super) cut: Option<CutName>,
    #[serde(rename = "b")]
    pub(super) backend: String,
    #[serde(rename = "s")]
    pub(super) source: String,
}

/// Longest name that a cursor contains in full, in bytes. Base64 of base64 leaves room for the
/// other fields.
const NAME_BYTES_MAX: usize = 1_024;

/// Distinguishes a long name from others with the same beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CutName {
    #[serde(rename = "l")]
    length: usize,
    /// The first half of its SHA-256.
    #[serde(rename = "h")]
    digest: [u64; 2],
}

impl CutName {
    fn from_name(name: &[u8]) -> Self {
        let digest: [u8; 32] = Sha256::digest(name).into();
        let number = |from: usize| {
            let bytes = digest[from..from + 8].iter();
            bytes.fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        Self {
            length: name.len(),
            digest: [number(0), number(8)],
        }
    }

    pub(super) fn is_of(&self, name: &[u8]) -> bool {
        name.len() == self.length && Self::from_name(name) == *self
    }
}

impl Cursor {
    /// After the row of this name.
    pub(super) fn after_row(sort: Sort, key: Option<i64>, name: &[u8], backend: &str, source: &str) -> Self {
        Self {
            sort,
            key,
            name: name.to_vec(),
            cut: None,
            backend: backend.to_owned(),
            source: source.to_owned(),
        }
    }

    pub(super) fn encode(&self) -> String {
        if self.name.len() > NAME_BYTES_MAX {
            return Self {
                name: self.name[..NAME_BYTES_MAX].to_vec(),
                cut: Some(CutName::from_name(&self.name)),
                ..self.clone()
            }
            .encode();
        }
        // Plain data with string keys only: serialization cannot fail.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(text: &str, sort: Sort) -> Result<Self, QueryError> {
        let broken = || {
            QueryError::new(
                "cursor",
                "was not issued by this server; start from the first page",
            )
        };
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| broken())?;
        let cursor: Self = serde_json::from_slice(&json).map_err(|_| broken())?;
        // A shorter beginning would make the server search more names than for its own cursors.
        if cursor.cut.is_some() && cursor.name.len() != NAME_BYTES_MAX {
            return Err(broken());
        }
        if cursor.sort != sort {
            return Err(QueryError::new(
                "cursor",
                "belongs to another sort; start from the first page",
            ));
        }
        Ok(cursor)
    }
}

mod bytes {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD_NO_PAD;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&STANDARD_NO_PAD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD_NO_PAD
            .decode(String::deserialize(from)?)
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use domain::limits::{QUERY_BYTES_MAX, RESOURCE_BYTES_MAX};
    use domain::names::{BackendName, Source};
    use domain::query::SortKey;

    use super::*;

    #[test]
    fn the_longest_names_fit_into_a_query_parameter() {
        // The longest resource, backend and source, with a key of many digits.
        let longest = |parses: &dyn Fn(&str) -> bool| {
            let mut text = "a".to_owned();
            while text.len() < 10_000 && parses(&format!("{text}a")) {
                text.push('a');
            }
            text
        };
        let backend = longest(&|text| BackendName::parse(text).is_ok());
        let source = longest(&|text| Source::parse(text).is_ok());
        for bytes in [0, 1, NAME_BYTES_MAX, NAME_BYTES_MAX + 1, RESOURCE_BYTES_MAX] {
            let name = vec![0xff; bytes];
            let sort = Sort {
                key: SortKey::Remaining,
                descending: true,
            };
            let cursor = Cursor::after_row(sort, Some(i64::MIN), &name, &backend, &source);
            let text = cursor.encode();
            assert!(text.len() <= QUERY_BYTES_MAX, "{bytes}: {}", text.len());
            let read = Cursor::decode(&text, sort).unwrap();
            assert!(name.starts_with(&read.name));
            assert_eq!(read.cut.is_some(), bytes > NAME_BYTES_MAX);
            assert!(
                read.cut
                    .is_none_or(|cut| cut.is_of(&name) && !cut.is_of(&name[1..]))
            );
        }
    }
}
