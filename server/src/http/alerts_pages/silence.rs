//! A new silence: counted, then made.

use std::sync::Arc;

use app::forms::alerts::silence::{MATCHERS, NewSilence, silence};
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::Visible;
use domain::alerts::SilenceDraft;

use super::{Asked, chrome, said};
use crate::alerts::AlertError;
use crate::http::form_page;
use crate::http::settings::form::Form;
use crate::http::settings::{Viewer, on_to};

pub(super) async fn new_silence(Viewer(who): Viewer, RawQuery(query): RawQuery) -> Response {
    let pairs = app::links::pairs(query.as_deref().unwrap_or_default());
    let shown = NewSilence {
        draft: SilenceDraft {
            matchers: pairs.into_iter().take(MATCHERS.len()).collect(),
            ..SilenceDraft::default()
        },
        ..NewSilence::default()
    };
    form_page::answer(StatusCode::OK, silence(&chrome(&who), &shown))
}

pub(super) async fn post_silence(
    State(asked): State<Arc<Asked>>,
    Viewer(who): Viewer,
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
        match asked.alerts.silence(&who, &draft).await {
            Ok(_) => return on_to("/alerts?silenced"),
            Err(error) => error,
        }
    } else {
        let visible = Visible::to(&who.grants);
        match asked.alerts.would_silence(&visible, &draft).await {
            Ok(count) => {
                shown.matches = Some(count);
                return form_page::answer(StatusCode::OK, silence(&chrome(&who), &shown));
            }
            Err(error) => error,
        }
    };
    let (status, why) = said(&error);
    shown.refusal = Some(why);
    if let AlertError::Invalid(faults) = error {
        shown.faults = faults;
    }
    form_page::answer(status, silence(&chrome(&who), &shown))
}
