//! `POST /audit/unlocks/{id}/review`: the same operation as the API's, from a form.

use app::forms::reply::FormReply;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use domain::access::Permission;

use crate::http::pages::form_request::FormRequest;
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::http::state::AppState;

pub(in crate::http) async fn review(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let steps = app::links::with_query("/audit", [("unlockId", id.as_str())]);
    let error = match state.unlocks.review(&form.who, &id).await {
        Ok(_) => return form.moved(&format!("{steps}&reviewed")),
        Err(error) => error,
    };
    let alert = format!("It was not reviewed: {error}.");
    let problem = Problem::from(error);
    if !form.who.may_anywhere(Permission::AuditRead) {
        return problem.into_response();
    }
    let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reply = FormReply {
        alert: Some(alert),
        ..FormReply::default()
    };
    form.reply(&state, &steps, status, reply).await
}
