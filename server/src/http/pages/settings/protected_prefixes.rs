//! `/settings/protected-prefixes`

use app::server_pages::layout::Section;
use app::server_pages::settings::protected_prefixes::{
    ProtectedPrefixRow, ProtectedPrefixes, protected_prefixes,
};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use domain::names::BackendName;
use domain::unlock::ProtectionLevel;

use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::protected_prefixes::{bad_prefix, bad_protection};
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::unlock::UnlockError;

pub(in crate::http) async fn show(State(state): State<AppState>, viewer: CurrentUser, uri: Uri) -> Response {
    let done = match uri.query() {
        Some("set") => Some("Protection saved. It is in effect."),
        Some("removed") => Some("Removed."),
        _ => None,
    };
    let content = ProtectedPrefixes {
        done: done.map(str::to_owned),
        ..ProtectedPrefixes::default()
    };
    page(&state, &viewer, StatusCode::OK, content).await
}

pub(in crate::http) async fn set(State(state): State<AppState>, viewer: CurrentUser, form: Form) -> Response {
    let (prefix, backend, protection) = (form.text("prefix"), form.text("backend"), form.text("protection"));
    let named = Some(backend.as_str()).filter(|name| !name.is_empty());
    let named = named.map(BackendName::parse).transpose();
    let protection = ProtectionLevel::parse(&protection);
    let fault = match (bad_prefix(&prefix), &named, protection) {
        (Some(why), ..) => Some(("prefix".to_owned(), format!("It {why}."))),
        (None, Err(_), _) => Some(("backend".to_owned(), "It is not a backend.".to_owned())),
        (None, _, None) => Some(("protection".to_owned(), format!("It {}.", bad_protection()))),
        _ => None,
    };
    let mut content = ProtectedPrefixes {
        prefix: prefix.clone(),
        backend,
        protection: protection.unwrap_or(ProtectionLevel::Protected),
        fault,
        ..ProtectedPrefixes::default()
    };
    let (Ok(named), Some(protection), None) = (named, protection, &content.fault) else {
        if let Some((field, why)) = content.fault.as_ref().filter(|(field, _)| field != "prefix") {
            content.refusal = Some(format!("The field {field} is invalid. {why}"));
        }
        return page(&state, &viewer, StatusCode::UNPROCESSABLE_ENTITY, content).await;
    };
    match state
        .unlocks
        .set_protected_prefix(&viewer.0, named.as_ref(), &prefix, protection)
        .await
    {
        Ok(()) => see_other("/settings/protected-prefixes?set"),
        Err(error) => refused(&state, &viewer, &error, content).await,
    }
}

pub(in crate::http) async fn remove(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    match state.unlocks.remove_protected_prefix(&viewer.0, &id).await {
        Ok(()) => see_other("/settings/protected-prefixes?removed"),
        Err(error) => refused(&state, &viewer, &error, ProtectedPrefixes::default()).await,
    }
}

async fn refused(
    state: &Services,
    viewer: &CurrentUser,
    error: &UnlockError,
    content: ProtectedPrefixes,
) -> Response {
    let content = ProtectedPrefixes {
        refusal: Some("Nothing was changed, because the audit log cannot be written now.".to_owned()),
        ..content
    };
    page(state, viewer, status(error), content).await
}

async fn page(
    state: &Services,
    viewer: &CurrentUser,
    code: StatusCode,
    content: ProtectedPrefixes,
) -> Response {
    let (rules, code, refusal) = match state.unlocks.protected_prefixes().await {
        Ok(rules) => (rules, code, content.refusal),
        Err(error) => {
            let unread =
                "The protected prefixes cannot be read: the console's store does not answer. Try again in a moment.".to_owned();
            (Vec::new(), status(&error), Some(unread))
        }
    };
    let rows = rules.into_iter().map(|rule| ProtectedPrefixRow {
        id: rule.id,
        backend: rule.backend.as_str().map(str::to_owned),
        prefix: rule.prefix,
        protection: rule.protection,
    });
    let content = ProtectedPrefixes {
        rows: rows.collect(),
        backends: state.backends.names(),
        refusal,
        ..content
    };
    response::html_response(
        code,
        protected_prefixes(&viewer.chrome(Section::ProtectedPrefixes), &content),
    )
}
