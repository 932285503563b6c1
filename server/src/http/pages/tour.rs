//! `/tour/dismiss`: closes the tour of the demo for the current user.

use axum::extract::State;
use axum::response::Response;

use crate::http::pages::form_request::FormRequest;
use crate::http::state::AppState;

pub(in crate::http) async fn dismiss(State(state): State<AppState>, form: FormRequest) -> Response {
    // Another server has no tour: nothing to close.
    if let Some(demo) = &state.auth.demo {
        demo.dismiss_tour(form.who.id());
    }
    form.moved("/")
}
