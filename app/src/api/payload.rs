//! How the answers inside a page's first HTML are read: as JSON, by the very code that reads those of the
//! server functions. Another reader, though it reads the same, would be all of it twice in the wasm.

use leptos::server::codee::{Decoder, Encoder};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub struct Payload;

impl<T: Serialize> Encoder<T> for Payload {
    type Error = serde_json::Error;
    type Encoded = String;

    fn encode(value: &T) -> Result<String, serde_json::Error> {
        serde_json::to_string(value)
    }
}

impl<T: DeserializeOwned> Decoder<T> for Payload {
    type Error = serde_json::Error;
    type Encoded = str;

    fn decode(text: &str) -> Result<T, serde_json::Error> {
        serde_json::from_slice(text.as_bytes())
    }
}
