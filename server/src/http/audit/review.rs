//! `POST /audit/unlocks/{id}/review`: the same act as the API's, from a page without a script.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use domain::access::Right;

use super::Desk;
use crate::http::people::Id;
use crate::http::problem::Problem;
use crate::http::settings::{Viewer, on_to};

pub(super) async fn review(State(desk): State<Arc<Desk>>, Viewer(who): Viewer, Id(id): Id) -> Response {
    let steps = app::links::with_query("/audit", [("unlockId", id.as_str())]);
    let error = match desk.unlocks.review(&who, &id).await {
        Ok(_) => return on_to(&steps),
        Err(error) => error,
    };
    let why = error.to_string();
    let problem = Problem::from(error);
    if !who.may_anywhere(Right::AuditRead) {
        return problem.into_response();
    }
    let status = StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let why = format!("It was not reviewed: {why}.");
    desk.page(&who, vec![("unlockId".to_owned(), id)], Some((status, why)))
        .await
}
