use std::collections::BTreeMap;

use axum::body::Body;
use axum::http::{HeaderMap, header};
use domain::lease::ValidationError;
use serde::Deserialize;

use super::{BodyError, FieldErrors, objects, optional_strings, read};

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Order {
    owner_id: String,
    seconds: i64,
    note: Option<String>,
    #[serde(default, deserialize_with = "objects")]
    items: Vec<Item>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Item {
    urgent: bool,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Label {
    #[serde(default, deserialize_with = "optional_strings")]
    names: Option<BTreeMap<String, String>>,
}

async fn body_of(body: &'static str) -> Result<Order, BodyError> {
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, "application/json".parse().unwrap())]);
    read(&headers, Body::from(body)).await
}

async fn fault(body: &'static str) -> (String, String) {
    let BodyError::Invalid(mut faults) = body_of(body).await.unwrap_err() else {
        panic!("{body}");
    };
    assert_eq!(faults.len(), 1, "{body}: {faults:?}");
    let fault = faults.remove(0);
    (fault.field, fault.message)
}

#[tokio::test]
async fn invalid_json_and_a_body_that_is_no_object_differ() {
    // Other kinds of values, among them an array of the members in order; then text that is cut off or has more after its end.
    for body in ["[]", "\"text\"", "7", "null", "[{}]", "[\"a\", 1, null, []]"] {
        let (field, message) = fault(body).await;
        assert_eq!(
            (field.as_str(), message.as_str()),
            ("body", "must be a JSON object"),
            "{body}"
        );
    }
    for body in [
        "{",
        "{\"seconds\": 1,}",
        "{\"ownerId\":\"a\",\"seconds\":1} {}",
        "{\"seconds\": 1e999}",
        "nothing",
    ] {
        let (field, message) = fault(body).await;
        assert_eq!(field, "body", "{body}");
        assert!(
            message.starts_with("is not valid JSON at line 1"),
            "{body}: {message}"
        );
    }
}

#[tokio::test]
async fn every_error_names_the_path_of_its_field() {
    for (body, field, message) in [
        (r#"{"seconds": 1}"#, "ownerId", "is required"),
        (r#"{"ownerId": null, "seconds": 1}"#, "ownerId", "is required"),
        (
            r#"{"ownerId": 7, "seconds": 1}"#,
            "ownerId",
            "must be a string, but is a number",
        ),
        (
            r#"{"ownerId": "a", "seconds": "10"}"#,
            "seconds",
            "must be a whole number, but is a string",
        ),
        (
            r#"{"ownerId": "a", "seconds": 10.0}"#,
            "seconds",
            "must be a whole number, but is 10.0",
        ),
        (
            r#"{"ownerId": "a", "seconds": 18446744073709551615}"#,
            "seconds",
            "is too large",
        ),
        (
            r#"{"ownerId": "a", "seconds": 1, "nope": 2}"#,
            "nope",
            "is not a field of this request",
        ),
        (
            r#"{"ownerId": "a", "ownerId": "b", "seconds": 1}"#,
            "ownerId",
            "must be given once",
        ),
        (
            r#"{"ownerId": "a", "seconds": 1, "items": {}}"#,
            "items",
            "must be an array, but is an object",
        ),
        (
            r#"{"ownerId": "a", "seconds": 1, "items": [[true]]}"#,
            "items[0]",
            "must be an object, but is an array",
        ),
        (
            r#"{"ownerId": "a", "seconds": 1, "items": [{"urgent": true}, {}]}"#,
            "items[1].urgent",
            "is required",
        ),
        (
            r#"{"ownerId": "a", "seconds": 1, "items": [{"urgent": 1}]}"#,
            "items[0].urgent",
            "must be true or false, but is a number",
        ),
        (
            r#"{"ownerId": "a", "seconds": 1, "items": [{"urgent": true, "x": 1}]}"#,
            "items[0].x",
            "is not a field of this request",
        ),
    ] {
        assert_eq!(
            fault(body).await,
            (field.to_owned(), message.to_owned()),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_map_with_a_repeated_member_is_refused() {
    // Of two values for one name neither is the right one.
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, "application/json".parse().unwrap())]);
    let label = async |body: &'static str| read::<Label>(&headers, Body::from(body)).await;
    for body in ["{}", r#"{"names": null}"#] {
        assert_eq!(label(body).await, Ok(Label { names: None }), "{body}");
    }
    let names: BTreeMap<String, String> =
        BTreeMap::from([("a", "x"), ("b", "x")].map(|(name, value)| (name.into(), value.into())));
    assert_eq!(
        label(r#"{"names": {"b": "x", "a": "x"}}"#).await,
        Ok(Label { names: Some(names) })
    );
    for (body, field, message) in [
        (
            r#"{"names": {"a": "x", "b": "y", "a": "x"}}"#,
            "names",
            "must not have the same member twice",
        ),
        (
            r#"{"names": {"a": 1}}"#,
            "names.a",
            "must be a string, but is a number",
        ),
        (r#"{"names": []}"#, "names", "must be an object, but is an array"),
    ] {
        let error = ValidationError::new(field, message);
        assert_eq!(label(body).await, Err(BodyError::Invalid(vec![error])), "{body}");
    }
}

#[tokio::test]
async fn strings_of_the_body_are_not_repeated_in_errors() {
    let (field, message) = fault(r#"{"ownerId": "a", "seconds": "hunter2"}"#).await;
    assert!(
        !field.contains("hunter2") && !message.contains("hunter2"),
        "{field} {message}"
    );
}

#[test]
fn validators_report_all_their_errors_at_once() {
    let mut errors = FieldErrors::default();
    assert_eq!(errors.check(Ok(1)), Some(1));
    assert_eq!(errors.check::<()>(Err(ValidationError::new("a", "is bad"))), None);
    assert_eq!(
        errors.check::<()>(Err(ValidationError::new("b", "is worse"))),
        None
    );
    let both = vec![
        ValidationError::new("a", "is bad"),
        ValidationError::new("b", "is worse"),
    ];
    assert_eq!(BodyError::from(errors), BodyError::Invalid(both));
}
