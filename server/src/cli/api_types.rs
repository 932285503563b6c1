//! Response types of the API, parsed leniently so that an older command works with a newer server.
//!
//! Rows are kept as received, for `--json`; tables use the fields they know.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// `GET /v1/inventory`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Page {
    pub locks: Vec<Value>,
    pub next_cursor: Option<String>,
    pub total: u64,
    /// Missing counts as false: only an explicit `true` means complete.
    pub complete: bool,
    pub backends: Vec<Value>,
}

/// One element of `locks`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Lock {
    pub backend: String,
    pub source: String,
    pub resource: String,
    pub owner_id: Option<String>,
    pub owner_count: Option<u64>,
    /// A string, because tokens of other systems exceed 2^53.
    pub fencing_token: Option<Value>,
    pub held_ms: Option<i64>,
    pub held_at_least_ms: Option<i64>,
    pub remaining_ms: Option<i64>,
    pub waiter_count: Option<u64>,
    pub state: Option<String>,
    pub unknown: Option<BTreeMap<String, String>>,
    pub absent: Option<BTreeMap<String, String>>,
}

/// One element of `backends`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Backend {
    pub name: String,
    pub status: Option<String>,
    pub age_ms: Option<i64>,
    pub coverage: Option<Value>,
    pub error: Option<Value>,
}

/// `application/problem+json`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiProblem {
    pub title: Option<String>,
    pub detail: Option<String>,
    pub field: Option<String>,
    pub request_id: Option<String>,
}

impl Lock {
    /// A row that cannot be parsed is shown with all fields unknown.
    pub fn parse(value: &Value) -> Self {
        Self::deserialize(value).unwrap_or_else(|_| {
            let text = |field: &str| value[field].as_str().unwrap_or("unknown").to_owned();
            Self {
                backend: text("backend"),
                source: text("source"),
                resource: text("resource"),
                ..Self::default()
            }
        })
    }

    /// Known not to exist, as opposed to unknown.
    pub fn is_absent(&self, field: &str) -> bool {
        self.absent
            .as_ref()
            .is_some_and(|absent| absent.contains_key(field))
    }
}

impl Backend {
    pub fn parse(value: &Value) -> Self {
        Self::deserialize(value).unwrap_or_else(|_| Self {
            name: value["name"].as_str().unwrap_or("a backend").to_owned(),
            ..Self::default()
        })
    }

    pub fn is_live(&self) -> bool {
        self.status.as_deref() == Some("live")
    }

    /// Why it is not live: the error, or the reason of a partial scan.
    pub fn why(&self) -> Option<String> {
        let error = self.error.as_ref().and_then(text_of);
        error.or_else(|| self.coverage.as_ref().and_then(text_of))
    }

    /// The remedy, if the server has one.
    pub fn remedy(&self) -> Option<&str> {
        self.error
            .as_ref()?
            .get("remedy")?
            .as_str()
            .filter(|remedy| !remedy.is_empty())
    }
}

/// The message of a string or of an object that contains one, at any depth.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text != "complete" => Some(text.clone()),
        Value::Object(fields) => ["message", "why", "detail"]
            .iter()
            .find_map(|name| fields.get(*name).and_then(Value::as_str).map(str::to_owned))
            .or_else(|| {
                fields
                    .values()
                    .filter(|value| value.is_object())
                    .find_map(text_of)
            }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unexpected_row_keeps_its_name_with_unknown_values() {
        // A field of an unexpected type: the row stays visible.
        let lock = Lock::parse(
            &json!({"backend": "cache", "resource": "lock:a", "heldMs": "soon", "state": "healthy"}),
        );
        assert_eq!(
            (lock.backend.as_str(), lock.resource.as_str()),
            ("cache", "lock:a")
        );
        assert_eq!((lock.held_ms, lock.state), (None, None));
    }

    #[test]
    fn the_reason_of_a_backend_error_is_found_in_any_form() {
        // The error as string and as object; the coverage as the domain serializes it.
        for (backend, why) in [
            (json!({"name": "a", "error": "refused"}), Some("refused")),
            (
                json!({"name": "a", "error": {"message": "refused", "remedy": "start it"}}),
                Some("refused"),
            ),
            (
                json!({"name": "a", "coverage": {"partial": {"seen": 1, "of": 2, "why": "cut"}}}),
                Some("cut"),
            ),
            (json!({"name": "a", "coverage": "complete", "error": null}), None),
        ] {
            assert_eq!(Backend::parse(&backend).why().as_deref(), why);
        }
    }
}
