//! A posted form of a page, and the replies to it: the next page, or its own page with errors. A script gets both as data.

use app::forms::reply::{FormOutcome, FormReply, TypedFields};
use app::forms::submit::OUTCOME_TYPE;
use app::session::FirstRender;
use axum::body::Body;
use axum::extract::{FromRequest, Request};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::response::see_other;
use crate::audit::Origin;
use crate::http::form_body::Form;
use crate::http::problem::Problem;
use crate::http::state::AppState;
use crate::identity::Principal;

pub(in crate::http) struct FormRequest {
    pub(in crate::http) who: Principal,
    pub(in crate::http) form: Form,
    /// Path that the form was sent to.
    pub(in crate::http) action: String,
    wants_data: bool,
}

impl<S: Sync> FromRequest<S> for FormRequest {
    type Rejection = Problem;

    async fn from_request(mut request: Request<Body>, state: &S) -> Result<Self, Problem> {
        let who = request.extensions_mut().remove::<Principal>();
        let accept = request.headers().get(header::ACCEPT);
        let wants_data = accept.is_some_and(|accept| accept.as_bytes() == OUTCOME_TYPE.as_bytes());
        let action = request.uri().path().to_owned();
        Ok(Self {
            who: who.unwrap_or_else(|| Principal::anonymous(Origin::default())),
            form: Form::from_request(request, state).await?,
            action,
            wants_data,
        })
    }
}

impl FormRequest {
    /// Done: on to the next page, with a key of `app::done_messages` in its query.
    pub(in crate::http) fn moved(&self, to: &str) -> Response {
        if self.wants_data {
            return outcome(StatusCode::OK, &FormOutcome::Moved { to: to.to_owned() });
        }
        see_other(to)
    }

    /// The page at `path` again, with the reply. Fills in the action, the status, and what was typed.
    pub(in crate::http) async fn reply(
        self,
        state: &AppState,
        path: &str,
        status: StatusCode,
        reply: FormReply,
    ) -> Response {
        let reply = FormReply {
            action: self.action,
            status: status.as_u16(),
            fields: TypedFields::without_secrets(self.form.into_fields()),
            ..reply
        };
        if self.wants_data {
            return outcome(status, &FormOutcome::Reply(reply));
        }
        let first = FirstRender {
            reply: Some(reply),
            ..FirstRender::default()
        };
        Box::pin(super::render(state, &self.who, path, status, first)).await
    }
}

fn outcome(status: StatusCode, outcome: &FormOutcome) -> Response {
    match outcome.to_bytes() {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, OUTCOME_TYPE)], bytes).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
