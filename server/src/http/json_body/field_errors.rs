//! Errors of fields: collected from validators, or made from an error of serde.

use domain::lease::ValidationError;

use super::BodyError;
use super::object::REPEATED;

/// Collects the errors of all fields, so that one answer names them all.
#[derive(Debug, Default)]
pub(in crate::http) struct FieldErrors(Vec<ValidationError>);

impl FieldErrors {
    /// Returns the value; collects an error and returns `None`.
    pub(in crate::http) fn check<T>(&mut self, value: Result<T, ValidationError>) -> Option<T> {
        value.map_err(|invalid| self.0.push(invalid)).ok()
    }

    /// Adds the errors of an object inside of this one.
    pub(in crate::http) fn extend_at(&mut self, path: &str, inner: Self) {
        self.0.extend(inner.within(path).0);
    }

    /// The same errors, of an object that is the member `path` of another.
    pub(in crate::http) fn within(self, path: &str) -> Self {
        let inner = self.0.into_iter();
        let at = |error: ValidationError| {
            let field = format!("{path}.{}", error.field);
            ValidationError { field, ..error }
        };
        Self(inner.map(at).collect())
    }

    /// The value, unless there are errors.
    pub(in crate::http) fn into_result<T>(self, value: T) -> Result<T, BodyError> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self.into())
        }
    }
}

impl From<ValidationError> for FieldErrors {
    fn from(error: ValidationError) -> Self {
        Self(vec![error])
    }
}

impl From<FieldErrors> for BodyError {
    fn from(errors: FieldErrors) -> Self {
        Self::Invalid(errors.0)
    }
}

/// A member of a wrong type, a missing, an unknown or a repeated one. Strings of the body are not repeated in the message:
/// one may be a secret.
pub(super) fn from_serde(error: &serde_path_to_error::Error<serde_json::Error>) -> ValidationError {
    let path = error.path().to_string();
    let path = if path == "." { "" } else { path.as_str() };
    let text = error.inner().to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(text, _)| text);
    for (start, message) in [
        ("missing field `", "is required"),
        ("unknown field `", "is not a field of this request"),
        ("duplicate field `", "must be given once"),
    ] {
        if let Some(member) = text.strip_prefix(start).and_then(|rest| rest.split('`').next()) {
            return ValidationError::new(child(path, member), message);
        }
    }
    if text == REPEATED {
        return ValidationError::new(path, "must not have the same member twice");
    }
    let message = text
        .strip_prefix("invalid type: ")
        .or_else(|| text.strip_prefix("invalid value: "))
        .and_then(|rest| rest.rsplit_once(", expected "))
        .map_or_else(
            || "is not valid".to_owned(),
            |(found, expected)| mismatch(found, expected),
        );
    match path {
        "" => ValidationError::new("body", "must be a JSON object"),
        path => ValidationError::new(path, message),
    }
}

/// serde_path_to_error names an unknown member in the path, but not a missing or repeated one.
fn child(path: &str, member: &str) -> String {
    if path.is_empty() || path == member {
        return member.to_owned();
    }
    match path.strip_suffix(member) {
        Some(parent) if parent.ends_with('.') => path.to_owned(),
        _ => format!("{path}.{member}"),
    }
}

/// From the two halves of serde's message: `floating point `1.5`` and `i64`.
fn mismatch(found: &str, expected: &str) -> String {
    let number = found
        .strip_prefix("integer `")
        .or_else(|| found.strip_prefix("floating point `"))
        .and_then(|rest| rest.strip_suffix('`'));
    let is_whole = expected.len() <= 4 && expected.starts_with(['i', 'u']);
    match (number, is_whole) {
        _ if found == "null" => return "is required".to_owned(),
        (Some(number), true) if !number.contains(['.', 'e']) => return "is too large".to_owned(),
        (Some(number), true) => return format!("must be a whole number, but is {number}"),
        _ => {}
    }
    let expected_text = match expected {
        _ if is_whole => "a whole number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "an object",
        _ if expected.starts_with("struct ") => "an object",
        other => other,
    };
    let kind = match found.split([' ', '`']).next() {
        _ if number.is_some() => "a number",
        Some("string" | "character") => "a string",
        Some("boolean") => "a boolean",
        Some("sequence") => "an array",
        Some("map") => "an object",
        _ => "something else",
    };
    format!("must be {expected_text}, but is {kind}")
}
