//! What the bodies of forced unlocks hold.

use domain::generation::Generation;
use domain::lease::Invalid;
use domain::limits::RESOURCE_BYTES_MAX;
use domain::names::{BackendName, Source};
use utoipa::ToSchema;

use crate::http::lease::body::Fields;
use crate::unlock::{Asked, Confirmation};

/// Longest generation, in bytes: what adapters make stays far below.
const GENERATION_BYTES_MAX: usize = 2 * RESOURCE_BYTES_MAX;

/// Read field by field; described here.
#[derive(ToSchema)]
#[schema(title = "UnlockAsked", example = json!({"backend": "$BACKEND", "resource": "$RESOURCE", "generation": "$GENERATION", "reason": "The worker's host is gone, see incident 4711"}), rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub(super) struct AskedWire {
    backend: String,
    /// Needed where two sources hold the same name.
    source: Option<String>,
    resource: String,
    /// Of the holding that was on the screen: another one is never touched.
    generation: String,
    /// At least 10 characters, five of them letters or digits; at most 500. Recorded word for word.
    reason: String,
}

#[derive(ToSchema)]
#[schema(title = "UnlockConfirmation", example = json!({"resource": "$RESOURCE"}), rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body for the API's description")]
pub(super) struct ConfirmationWire {
    /// `confirm.type` of the intent, typed by a person.
    resource: String,
    /// Acts alone where a second person is wanted: a second reason. Flagged until somebody reviews it.
    break_glass_reason: Option<String>,
}

/// `reason` is given when it stands outside, for many.
pub(super) fn parse(mut fields: Fields, reason: Option<&str>) -> Result<Asked, Invalid> {
    let bad = |field: &'static str| move |_| Invalid::new(field, "is not a name that there can be");
    let source = fields.optional_text("source")?;
    let asked = Asked {
        backend: BackendName::parse(&fields.text("backend")?).map_err(bad("backend"))?,
        source: source
            .map(|text| Source::parse(&text))
            .transpose()
            .map_err(bad("source"))?,
        resource: bounded("resource", fields.text("resource")?, RESOURCE_BYTES_MAX)?,
        generation: Generation::new(bounded(
            "generation",
            fields.text("generation")?,
            GENERATION_BYTES_MAX,
        )?),
        reason: match reason {
            Some(reason) => reason.to_owned(),
            None => fields.text("reason")?,
        },
    };
    fields.end()?;
    Ok(asked)
}

pub(super) fn confirmation(mut fields: Fields) -> Result<Confirmation, Invalid> {
    let confirmation = Confirmation {
        resource: fields.text("resource")?,
        break_glass: fields.optional_text("breakGlassReason")?,
    };
    fields.end()?;
    Ok(confirmation)
}

fn bounded(field: &'static str, text: String, bytes_max: usize) -> Result<String, Invalid> {
    if (1..=bytes_max).contains(&text.len()) {
        return Ok(text);
    }
    Err(Invalid::new(
        field,
        format!("must have 1 to {bytes_max} bytes, but has {}", text.len()),
    ))
}
