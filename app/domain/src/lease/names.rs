//! Names that the lease service accepts: stricter than names of other backends.
//!
//! Names are bytes: case, NFC and NFD are different names. They are never trimmed or
//! normalized, only rejected.

use crate::names::{OwnerId, Resource};

use super::limits::{KEY_CHARS_MAX, OWNER_BYTES_MAX, REASON_BYTES_MAX, RESOURCE_BYTES_MAX, SOURCE_BYTES_MAX};
use super::validation_error::ValidationError;

/// # Errors
/// Names `resource` and the reason.
pub fn resource(text: &str) -> Result<Resource, ValidationError> {
    checked("resource", text, RESOURCE_BYTES_MAX).map(Resource::from)
}

/// Prefix of the server's own leases, which coordinate its replicas.
pub const RESERVED_PREFIX: &str = "leasehold/";

pub fn is_reserved(resource: &str) -> bool {
    resource.starts_with(RESERVED_PREFIX)
}

/// # Errors
/// Names `ownerId` and the reason.
pub fn owner(text: &str) -> Result<OwnerId, ValidationError> {
    checked("ownerId", text, OWNER_BYTES_MAX).map(OwnerId::new)
}

/// The reporter of a rejection.
///
/// # Errors
/// Names `source` and the reason.
pub fn source(text: &str) -> Result<&str, ValidationError> {
    checked("source", text, SOURCE_BYTES_MAX)
}

/// A text of an operator: `by` or `reason`.
///
/// # Errors
/// Names the field and the reason.
pub fn operator_text<'a>(field: &str, text: &'a str) -> Result<&'a str, ValidationError> {
    checked(field, text, REASON_BYTES_MAX)
}

/// An idempotency key: 1 to 128 visible ASCII characters.
///
/// # Errors
/// Names `Idempotency-Key` and the reason.
pub fn idempotency_key(bytes: &[u8]) -> Result<&str, ValidationError> {
    let fits = (1..=KEY_CHARS_MAX).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
    let text = fits.then(|| std::str::from_utf8(bytes).ok()).flatten();
    text.ok_or_else(|| {
        let message = format!("must be 1 to {KEY_CHARS_MAX} visible ASCII characters");
        ValidationError::new("Idempotency-Key", message)
    })
}

fn checked<'a>(field: &str, text: &'a str, bytes_max: usize) -> Result<&'a str, ValidationError> {
    if text.is_empty() || text.len() > bytes_max {
        let message = format!("must have 1 to {bytes_max} bytes, but has {}", text.len());
        return Err(ValidationError::new(field, message));
    }
    if let Some(bad) = text.chars().find(|&c| is_refused(c)) {
        let message = format!("must not hold the character U+{:04X}", u32::from(bad));
        return Err(ValidationError::new(field, message));
    }
    let edge = |c: Option<char>| c.is_some_and(char::is_whitespace);
    if edge(text.chars().next()) || edge(text.chars().next_back()) {
        return Err(ValidationError::new(
            field,
            "must not begin or end with white space",
        ));
    }
    Ok(text)
}

/// C0 and C1 controls (including NUL and DEL), and characters that change the text direction.
const fn is_refused(c: char) -> bool {
    matches!(c,
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{061C}' | '\u{200E}' | '\u{200F}'
        | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}
