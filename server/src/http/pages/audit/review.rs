//! `POST /audit/unlocks/{id}/review`: the same act as the API's, from a page without a script.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use domain::access::Permission;

use crate::http::current_user::CurrentUser;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::problem::Problem;
use crate::http::state::AppState;

pub(in crate::http) async fn review(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    PathId(id): PathId,
) -> Response {
    let steps = app::links::with_query("/audit", [("unlockId", id.as_str())]);
    let error = match state.unlocks.review(&who, &id).await {
        Ok(_) => return see_other(&steps),
        Err(error) => error,
    };
    let why = error.to_string();
    let problem = Problem::from(error);
    if !who.may_anywhere(Permission::AuditRead) {
        return problem.into_response();
    }
    let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let why = format!("It was not reviewed: {why}.");
    state
        .page(&who, vec![("unlockId".to_owned(), id)], Some((status, why)))
        .await
}
