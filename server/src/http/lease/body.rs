//! Strict JSON bodies: an object, whole numbers, no unknown field. Every refusal names the field.

use std::collections::BTreeMap;
use std::fmt;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use domain::lease::limits::{BODY_BYTES_MAX, TOKEN_MAX};
use domain::lease::{Invalid, Metadata};
use domain::token::FencingToken;
use futures::StreamExt as _;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

/// Why there is no object to read fields from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) enum BodyError {
    TooLarge,
    NotJson,
    Invalid(Invalid),
}

impl From<Invalid> for BodyError {
    fn from(invalid: Invalid) -> Self {
        Self::Invalid(invalid)
    }
}

/// A client that is still sending does not hear that it sends too much: so much is read and dropped before it is told.
const DROPPED_BYTES_MAX: usize = 1024 * 1024;

async fn read_whole(body: Body) -> Result<Vec<u8>, BodyError> {
    let mut parts = body.into_data_stream();
    let (mut bytes, mut sent) = (Vec::new(), 0_usize);
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| Invalid::new("body", "could not be read to its end"))?;
        sent = sent.saturating_add(part.len());
        if sent <= BODY_BYTES_MAX {
            bytes.extend_from_slice(&part);
        } else if sent > DROPPED_BYTES_MAX {
            break;
        }
    }
    if sent > BODY_BYTES_MAX {
        return Err(BodyError::TooLarge);
    }
    Ok(bytes)
}

/// The fields of a body, taken one by one. A list: there are few, and a map of them costs more than it finds.
#[derive(Debug, Default)]
pub(in crate::http) struct Fields(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Object)
    }
}

/// Reads an object as its members come.
struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Fields, A::Error> {
        let mut fields = Vec::new();
        while let Some(member) = members.next_entry()? {
            fields.push(member);
        }
        Ok(Fields(fields))
    }
}

impl Fields {
    pub(in crate::http) async fn read(headers: &HeaderMap, body: Body) -> Result<Self, BodyError> {
        Self::read_or_empty(headers, body)
            .await?
            .ok_or_else(|| Invalid::new("body", "must be a JSON object, but is empty").into())
    }

    /// None for an empty body, whatever its content type.
    pub(in crate::http) async fn read_or_empty(
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Option<Self>, BodyError> {
        let bytes = read_whole(body).await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        if !is_json(headers) {
            return Err(BodyError::NotJson);
        }
        match serde_json::from_slice(&bytes) {
            Ok(fields) => Ok(Some(fields)),
            Err(error) if error.is_data() => Err(Invalid::new("body", "must be a JSON object").into()),
            Err(error) => {
                let place = format!(
                    "is not valid JSON at line {}, column {}",
                    error.line(),
                    error.column()
                );
                Err(Invalid::new("body", place).into())
            }
        }
    }

    /// A field that is there twice says what it says last.
    fn take(&mut self, name: &str) -> Option<Value> {
        self.0
            .extract_if(.., |(own, _)| own == name)
            .last()
            .map(|(_, value)| value)
    }

    pub(in crate::http) fn text(&mut self, name: &str) -> Result<String, Invalid> {
        self.optional_text(name)?.ok_or_else(|| required(name))
    }

    pub(in crate::http) fn optional_text(&mut self, name: &str) -> Result<Option<String>, Invalid> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(Invalid::new(
                name,
                format!("must be a string, but is {}", kind(&other)),
            )),
        }
    }

    /// An array of strings.
    pub(in crate::http) fn optional_texts(&mut self, name: &str) -> Result<Option<Vec<String>>, Invalid> {
        let array = match self.take(name) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Array(array)) => array,
            Some(other) => {
                let message = format!("must be an array of strings, but is {}", kind(&other));
                return Err(Invalid::new(name, message));
            }
        };
        let text = |value| match value {
            Value::String(text) => Ok(text),
            other => Err(Invalid::new(
                name,
                format!("must hold strings, but holds {}", kind(&other)),
            )),
        };
        array.into_iter().map(text).collect::<Result<_, _>>().map(Some)
    }

    pub(in crate::http) fn whole(&mut self, name: &str) -> Result<i64, Invalid> {
        self.optional_whole(name)?.ok_or_else(|| required(name))
    }

    /// A JSON integer: `10.0`, `1e3` and `"10"` are none.
    pub(in crate::http) fn optional_whole(&mut self, name: &str) -> Result<Option<i64>, Invalid> {
        match self.take(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) => match number.as_i64() {
                Some(whole) => Ok(Some(whole)),
                None if number.is_u64() => Err(Invalid::new(name, "is too large")),
                None => Err(Invalid::new(
                    name,
                    format!("must be a whole number, but is {number}"),
                )),
            },
            Some(other) => Err(Invalid::new(
                name,
                format!("must be a whole number, but is {}", kind(&other)),
            )),
        }
    }

    pub(in crate::http) fn token(&mut self, name: &str) -> Result<FencingToken, Invalid> {
        self.optional_token(name)?.ok_or_else(|| required(name))
    }

    pub(in crate::http) fn optional_token(&mut self, name: &str) -> Result<Option<FencingToken>, Invalid> {
        let number = self.optional_whole(name)?;
        let fits = |number: i64| u64::try_from(number).ok().filter(|number| *number <= TOKEN_MAX);
        number
            .map(|number| {
                let range = || Invalid::new(name, format!("must be 0 to {TOKEN_MAX}, but is {number}"));
                fits(number).map(FencingToken::new).ok_or_else(range)
            })
            .transpose()
    }

    pub(in crate::http) fn metadata(&mut self) -> Result<Metadata, Invalid> {
        let map = match self.take("metadata") {
            None | Some(Value::Null) => return Ok(Metadata::default()),
            Some(Value::Object(map)) => map,
            Some(other) => {
                let message = format!("must be an object of strings, but is {}", kind(&other));
                return Err(Invalid::new("metadata", message));
            }
        };
        let bytes = serde_json::to_string(&map).map_or(usize::MAX, |text| text.len());
        let mut strings = BTreeMap::new();
        for (name, value) in map {
            let Value::String(text) = value else {
                let message = format!("must be a string, but is {}", kind(&value));
                return Err(Invalid::new(format!("metadata.{name}"), message));
            };
            strings.insert(name, text);
        }
        Metadata::new(strings, bytes)
    }

    pub(in crate::http) fn flag(&mut self, name: &str) -> Result<bool, Invalid> {
        match self.take(name) {
            Some(Value::Bool(flag)) => Ok(flag),
            None => Err(required(name)),
            Some(other) => Err(Invalid::new(
                name,
                format!("must be true or false, but is {}", kind(&other)),
            )),
        }
    }

    /// An array of objects, each with fields of its own.
    pub(in crate::http) fn objects(&mut self, name: &str) -> Result<Vec<Self>, Invalid> {
        let array = match self.take(name) {
            Some(Value::Array(array)) => array,
            None | Some(Value::Null) => return Err(required(name)),
            Some(other) => {
                let message = format!("must be an array of objects, but is {}", kind(&other));
                return Err(Invalid::new(name, message));
            }
        };
        let object = |value| match value {
            Value::Object(fields) => Ok(Self(fields.into_iter().collect())),
            other => Err(Invalid::new(
                name,
                format!("must hold objects, but holds {}", kind(&other)),
            )),
        };
        array.into_iter().map(object).collect()
    }

    /// Nothing may be left.
    pub(in crate::http) fn end(self) -> Result<(), Invalid> {
        match self.0.into_iter().next() {
            None => Ok(()),
            Some((name, _)) => Err(Invalid::new(name, "is not a field of this request")),
        }
    }
}

fn required(name: &str) -> Invalid {
    Invalid::new(name, "is required")
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    kind.and_then(|kind| kind.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(body: &'static str) -> Result<Fields, BodyError> {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, "application/json".parse().unwrap())]);
        Fields::read(&headers, Body::from(body)).await
    }

    #[tokio::test]
    async fn what_is_no_object_is_told_from_what_is_no_json_and_of_two_alike_the_last_counts() {
        // Other kinds of values, an object that breaks off, one with more behind it; then one field twice, and one too many.
        let no_object = Invalid::new("body", "must be a JSON object");
        for body in ["[]", "\"text\"", "7", "null", "[{}]"] {
            assert_eq!(read(body).await.unwrap_err(), no_object.clone().into(), "{body}");
        }
        for body in ["{", "{\"a\": 1,}", "{} {}", "{\"a\": 1e999}", "nothing"] {
            let BodyError::Invalid(invalid) = read(body).await.unwrap_err() else {
                panic!("{body}");
            };
            assert!(
                invalid.message.starts_with("is not valid JSON at line 1"),
                "{body}: {invalid:?}"
            );
        }
        let mut fields = read(r#"{"a": 1, "b": true, "a": 2}"#).await.unwrap();
        assert_eq!(fields.whole("a"), Ok(2));
        assert_eq!(fields.optional_whole("a"), Ok(None));
        assert_eq!(
            fields.end(),
            Err(Invalid::new("b", "is not a field of this request"))
        );
    }
}
