//! `/settings/protected-prefixes`: protected prefixes, and the read-only switch.

use app::console::ConsoleError;
use app::forms::reply::FormReply;
use app::pages::settings::data::{ProtectedPrefixRow, ProtectedPrefixesData};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::escape::visible;
use domain::format;
use domain::names::BackendName;
use domain::unlock::ProtectionLevel;

use crate::http::form_body::Form;
use crate::http::pages::caller_data::unavailable;
use crate::http::pages::form_request::FormRequest;
use crate::http::path_id::PathId;
use crate::http::protected_prefixes::{bad_prefix, bad_protection};
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::unlock::{ProtectedPrefix, UnlockError, is_exception};

const PAGE: &str = "/settings/protected-prefixes";
/// Exceptions that a message names.
const EXCEPTIONS_MAX: usize = 10;

impl Services {
    pub(super) async fn protected_prefixes_data(&self) -> Result<ProtectedPrefixesData, ConsoleError> {
        let rules = self.unlocks.protected_prefixes().await.map_err(|_| {
            unavailable("The protected prefixes cannot be read: the console's store does not answer. Try again in a moment.")
        })?;
        let rows = rules.iter().map(|rule| ProtectedPrefixRow {
            id: rule.id.clone(),
            backend: rule.backend.as_str().map(str::to_owned),
            prefix: rule.prefix.clone(),
            protection: rule.protection,
            is_exception: is_exception(&rules, rule),
        });
        Ok(ProtectedPrefixesData {
            rows: rows.collect(),
            backends: self.backends.names(),
        })
    }
}

struct Input {
    prefix: String,
    backend: Option<BackendName>,
    protection: ProtectionLevel,
}

/// # Errors
/// Every invalid field with its error.
fn parse(form: &Form) -> Result<Input, Vec<(String, String)>> {
    let (prefix, backend) = (form.text("prefix"), form.text("backend"));
    let backend_name = Some(backend.as_str()).filter(|name| !name.is_empty());
    let backend = backend_name.map(BackendName::parse).transpose();
    let protection = ProtectionLevel::parse(&form.text("protection"));
    let faults = [
        bad_prefix(&prefix).map(|why| ("prefix", format!("It {why}."))),
        backend
            .is_err()
            .then(|| ("backend", "It is not a backend. Choose one.".to_owned())),
        protection
            .is_none()
            .then(|| ("protection", format!("It {}.", bad_protection()))),
    ];
    match (backend, protection) {
        (Ok(backend), Some(protection)) if faults[0].is_none() => Ok(Input {
            prefix,
            backend,
            protection,
        }),
        _ => Err(faults
            .into_iter()
            .flatten()
            .map(|(field, why)| (field.to_owned(), why))
            .collect()),
    }
}

pub(in crate::http) async fn set(State(state): State<AppState>, form: FormRequest) -> Response {
    let input = match parse(&form.form) {
        Ok(input) => input,
        Err(faults) => {
            let reply = FormReply {
                faults,
                ..FormReply::default()
            };
            return form
                .reply(&state, PAGE, StatusCode::UNPROCESSABLE_ENTITY, reply)
                .await;
        }
    };
    let set = state.unlocks.set_protected_prefix(
        &form.who,
        input.backend.as_ref(),
        &input.prefix,
        input.protection,
    );
    match set.await {
        Ok(exceptions) if exceptions.is_empty() => form.moved("/settings/protected-prefixes?set"),
        Ok(exceptions) => {
            let reply = FormReply {
                done: Some(saved_except(&exceptions)),
                ..FormReply::default()
            };
            form.reply(&state, PAGE, StatusCode::OK, reply).await
        }
        Err(error) => error_reply(&state, form, &error).await,
    }
}

fn saved_except(exceptions: &[ProtectedPrefix]) -> String {
    let names = exceptions.iter().take(EXCEPTIONS_MAX).map(|rule| {
        let backend = rule.backend.as_str().unwrap_or("every backend");
        format!("{} on {}", visible(&rule.prefix), visible(backend))
    });
    let names: Vec<String> = names.collect();
    let more = match exceptions.len() - names.len() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    let rules = format::counted(exceptions.len() as u64, "older rule keeps", "older rules keep");
    format!(
        "Protection saved. It is in effect, but {rules} names unprotected: {}{more}.",
        names.join(", ")
    )
}

pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    match state.unlocks.remove_protected_prefix(&form.who, &id).await {
        Ok(()) => form.moved("/settings/protected-prefixes?removed"),
        Err(error) => error_reply(&state, form, &error).await,
    }
}

pub(in crate::http) async fn set_read_only(State(state): State<AppState>, form: FormRequest) -> Response {
    let is_read_only = match form.form.text("read_only").as_str() {
        "yes" => true,
        "no" => false,
        _ => {
            let reply = FormReply {
                alert: Some("Choose whether the console is read-only: yes or no.".to_owned()),
                ..FormReply::default()
            };
            return form
                .reply(&state, PAGE, StatusCode::UNPROCESSABLE_ENTITY, reply)
                .await;
        }
    };
    match state.auth.identity.set_read_only(&form.who, is_read_only).await {
        Ok(()) => form.moved("/settings/protected-prefixes?switched"),
        Err(error) => super::error_reply(&state, form, PAGE, &error).await,
    }
}

async fn error_reply(state: &AppState, form: FormRequest, error: &UnlockError) -> Response {
    let alert = "Nothing was changed, because the audit log cannot be written now.".to_owned();
    let reply = FormReply {
        alert: Some(alert),
        ..FormReply::default()
    };
    form.reply(state, PAGE, status(error), reply).await
}
