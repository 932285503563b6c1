//! A new silence: counted, then made.

use app::server_pages::alerts::silence::{MATCHERS, NewSilence, silence};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::Visible;
use domain::alerts::SilenceDraft;

use super::{chrome, error_text};
use crate::alerts::AlertError;
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::state::AppState;

pub(in crate::http) async fn new_silence(
    CurrentUser(who): CurrentUser,
    RawQuery(query): RawQuery,
) -> Response {
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let shown = NewSilence {
        draft: SilenceDraft {
            matchers: pairs.into_iter().take(MATCHERS.len()).collect(),
            ..SilenceDraft::default()
        },
        ..NewSilence::default()
    };
    response::html_response(StatusCode::OK, silence(&chrome(&who), &shown))
}

pub(in crate::http) async fn post_silence(
    State(state): State<AppState>,
    CurrentUser(who): CurrentUser,
    form: Form,
) -> Response {
    let matchers = MATCHERS.map(|(label, value)| (form.text(label), form.text(value)));
    let draft = SilenceDraft {
        matchers: matchers.to_vec(),
        lasts: form.text("lasts"),
        comment: form.text("comment"),
    };
    let mut shown = NewSilence {
        draft: draft.clone(),
        ..NewSilence::default()
    };
    let error = if form.text("act") == "save" {
        match state.alerts.silence(&who, &draft).await {
            Ok(_) => return see_other("/alerts?silenced"),
            Err(error) => error,
        }
    } else {
        let visible = Visible::to(&who.grants);
        match state.alerts.would_silence(&visible, &draft).await {
            Ok(count) => {
                shown.matches = Some(count);
                return response::html_response(StatusCode::OK, silence(&chrome(&who), &shown));
            }
            Err(error) => error,
        }
    };
    let (status, why) = error_text(&error);
    shown.refusal = Some(why);
    if let AlertError::Invalid(faults) = error {
        shown.faults = faults;
    }
    response::html_response(status, silence(&chrome(&who), &shown))
}
