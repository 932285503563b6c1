//! `/tour/dismiss`: closes the tour of the demo for the current user.

use axum::extract::State;
use axum::http::Uri;
use axum::response::{IntoResponse as _, Response};

use crate::http::pages::form_request::FormRequest;
use crate::http::problem::Problem;
use crate::http::state::AppState;

const PATH: &str = "/tour/dismiss";

pub(in crate::http) async fn dismiss(State(state): State<AppState>, form: FormRequest) -> Response {
    let Some(demo) = &state.auth.demo else {
        return Problem::no_such_route(&Uri::from_static(PATH)).into_response();
    };
    demo.dismiss_tour(form.who.id());
    form.moved("/")
}
