//! Encoding of server function responses, also inside a page's first HTML: postcard, which
//! carries no field names. JSON readers for the same types would add 100 kB of wasm. Lock
//! clients and scripts use the REST API, in JSON.
//!
//! Each payload begins with the version stamp of the types, so that a tab of another build gets
//! an error instead of wrong data.

use leptos::server_fn::codec::Post;
use leptos::server_fn::{Bytes, ContentType, Decodes, Encodes, Format, FormatType};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Hash of the sources of all payload types, by `build.rs`: two builds with the same stamp can read each other's payloads. A
/// changed comment changes it too, which is harmless.
const STAMP: [u8; 4] = *include_bytes!(concat!(env!("OUT_DIR"), "/payload_stamp"));

/// Whether the payload may begin with the stamp of some build. The first byte of a stamp begins no UTF-8 text.
pub(crate) fn is_stamped(payload: &[u8]) -> bool {
    matches!(payload.first(), Some(0x80..=0xbf))
}

/// The version stamp as text.
pub(crate) fn build() -> String {
    u32::from_le_bytes(STAMP).to_string()
}

pub struct Payload;

/// Output encoding of all server functions.
pub type EncodedResponse = Post<Payload>;

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PayloadError {
    #[error("the console has another version now; reload this page")]
    OtherBuild,
    #[error("the response of the console cannot be read")]
    Malformed,
}

pub(crate) fn write<T: Serialize>(value: &T) -> Result<Vec<u8>, PayloadError> {
    postcard::to_extend(value, STAMP.to_vec()).map_err(|_| PayloadError::Malformed)
}

pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PayloadError> {
    let value = bytes.strip_prefix(&STAMP).ok_or(PayloadError::OtherBuild)?;
    postcard::from_bytes(value).map_err(|_| PayloadError::Malformed)
}

impl ContentType for Payload {
    const CONTENT_TYPE: &'static str = "application/octet-stream";
}

impl FormatType for Payload {
    const FORMAT_TYPE: Format = Format::Binary;
}

impl<T: Serialize> Encodes<T> for Payload {
    type Error = PayloadError;

    fn encode(value: &T) -> Result<Bytes, PayloadError> {
        write(value).map(Bytes::from)
    }
}

impl<T: DeserializeOwned> Decodes<T> for Payload {
    type Error = PayloadError;

    fn decode(bytes: Bytes) -> Result<T, PayloadError> {
        read(&bytes)
    }
}

/// The response of a server function.
///
/// # Errors
/// Another build wrote it, or it is malformed.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, PayloadError> {
    read(bytes)
}

/// Text form inside HTML.
pub(crate) fn to_text<T: Serialize>(value: &T) -> Result<String, PayloadError> {
    write(value).map(|bytes| Payload::into_encoded_string(bytes.into()))
}

pub(crate) fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, PayloadError> {
    let bytes = Payload::from_encoded_string(text).map_err(|_| PayloadError::Malformed)?;
    read(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_stamp_is_the_beginning_of_a_text() {
        assert!(
            is_stamped(&STAMP) && std::str::from_utf8(&STAMP).is_err(),
            "{STAMP:?}"
        );
        assert!(!is_stamped("\u{feff}<html>".as_bytes()) && !is_stamped(b"{}") && !is_stamped(b""));
    }

    #[test]
    fn a_payload_of_another_build_is_refused() {
        // The same bytes with another stamp, truncated, and complete.
        let mut bytes = write(&("a".to_owned(), 7_u32)).unwrap();
        assert_eq!(read(&bytes), Ok(("a".to_owned(), 7_u32)));
        assert_eq!(read::<(String, u32)>(&bytes[..5]), Err(PayloadError::Malformed));
        bytes[0] ^= 1;
        assert_eq!(read::<(String, u32)>(&bytes), Err(PayloadError::OtherBuild));
    }
}
