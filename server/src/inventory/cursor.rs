//! Keyset cursors: where the last page ended, as opaque text. Exact under change for the order by resource.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use domain::query::{QueryError, Sort};
use serde::{Deserialize, Serialize};

/// The last row of a page: its sort key, then what breaks ties.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Cursor {
    #[serde(rename = "o")]
    pub(super) sort: Sort,
    #[serde(rename = "k")]
    pub(super) key: Option<i64>,
    #[serde(rename = "n", with = "bytes")]
    pub(super) name: Vec<u8>,
    #[serde(rename = "b")]
    pub(super) backend: String,
    #[serde(rename = "s")]
    pub(super) source: String,
}

impl Cursor {
    pub(super) fn encode(&self) -> String {
        // Plain data without maps keyed by anything but strings: it always serializes.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    pub(super) fn decode(text: &str, sort: Sort) -> Result<Self, QueryError> {
        let broken = || {
            QueryError::new(
                "cursor",
                "is not one that this server gave; start from the first page",
            )
        };
        let json = URL_SAFE_NO_PAD.decode(text).map_err(|_| broken())?;
        let cursor: Self = serde_json::from_slice(&json).map_err(|_| broken())?;
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
