//! `/unlocks/{id}`: the second step, its acts, and the outcome.

use std::sync::Arc;
use std::time::Duration;

use app::forms::unlock::confirm::step;
use app::forms::unlock::{Proof, Refusal, Step, Typed, missing, path};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use domain::access::Right;
use domain::unlock::{Unlock, UnlockState, difference};

use super::{UnlockPages, chrome, refusal};
use crate::http::form_page;
use crate::http::people::Id;
use crate::http::prove as reauthentication;
use crate::http::settings::form::Form;
use crate::http::settings::{Viewer, on_to};
use crate::http::unlock::status;
use crate::identity::IdentityError;
use crate::unlock::{Confirmation, Standing, UnlockError};

/// How often a page looks again by itself that waits for something and has no field to type into.
const OUTCOME_EVERY: HeaderValue = HeaderValue::from_static("5");
const APPROVAL_EVERY: HeaderValue = HeaderValue::from_static("10");

/// What a page says beside how the unlock stands.
#[derive(Default)]
struct Said {
    is_alone: bool,
    typed: Typed,
    refusal: Option<Refusal>,
}

pub(super) async fn show(
    State(pages): State<Arc<UnlockPages>>,
    viewer: Viewer,
    Id(id): Id,
    uri: Uri,
) -> Response {
    let said = Said {
        is_alone: uri.query() == Some("alone"),
        ..Said::default()
    };
    page(&pages, &viewer, &id, (StatusCode::OK, said)).await
}

pub(super) async fn confirm(
    State(pages): State<Arc<UnlockPages>>,
    viewer: Viewer,
    Id(id): Id,
    form: Form,
) -> Response {
    let second = form.find("breakGlassReason");
    let confirmation = Confirmation {
        resource: form.typed("resource"),
        break_glass: second.clone(),
    };
    let done = pages.unlocks.confirm(&viewer.0, &id, confirmation).await;
    let error = match done {
        Ok(_) => return on_to(&path(&id)),
        // That is an outcome, and stands on the page.
        Err(UnlockError::HolderChanged { .. }) => return on_to(&path(&id)),
        Err(error) => error,
    };
    let mut said = Said {
        is_alone: second.is_some(),
        typed: Typed {
            name: form.typed("resource"),
            second_reason: second.unwrap_or_default(),
            ..Typed::default()
        },
        refusal: None,
    };
    match &error {
        UnlockError::NameMismatch { left } if *left > 0 => {
            let unlock = pages.unlocks.get(&viewer.0, &id).await.ok();
            said.typed.name_fault = Some(wrong_name(&error, &said.typed.name, unlock.as_ref()));
        }
        UnlockError::WeakReason { weakness, .. } => said.typed.second_fault = Some(format!("{weakness}.")),
        other => said.refusal = Some(refusal(other)),
    }
    page(&pages, &viewer, &id, (status(&error), said)).await
}

/// The refusal, with where what was typed leaves the name.
fn wrong_name(error: &UnlockError, typed: &str, unlock: Option<&Unlock>) -> String {
    let differs = unlock.and_then(|unlock| difference(typed, &unlock.resource));
    match differs {
        Some(differs) => format!("{error}: {differs}"),
        None => error.to_string(),
    }
}

pub(super) async fn approve(State(pages): State<Arc<UnlockPages>>, viewer: Viewer, Id(id): Id) -> Response {
    let done = pages.unlocks.approve(&viewer.0, &id).await;
    done_or_refused(&pages, &viewer, &id, done).await
}

pub(super) async fn cancel(State(pages): State<Arc<UnlockPages>>, viewer: Viewer, Id(id): Id) -> Response {
    let done = pages.unlocks.cancel(&viewer.0, &id).await;
    done_or_refused(&pages, &viewer, &id, done).await
}

pub(super) async fn review(State(pages): State<Arc<UnlockPages>>, viewer: Viewer, Id(id): Id) -> Response {
    let done = pages.unlocks.review(&viewer.0, &id).await;
    done_or_refused(&pages, &viewer, &id, done).await
}

async fn done_or_refused(
    pages: &UnlockPages,
    viewer: &Viewer,
    id: &str,
    done: Result<Unlock, UnlockError>,
) -> Response {
    let error = match done {
        Ok(_) => return on_to(&path(id)),
        Err(error) => error,
    };
    let said = Said {
        refusal: Some(refusal(&error)),
        ..Said::default()
    };
    page(pages, viewer, id, (status(&error), said)).await
}

/// The password once more, in the same session.
pub(super) async fn prove(
    State(pages): State<Arc<UnlockPages>>,
    viewer: Viewer,
    Id(id): Id,
    form: Form,
) -> Response {
    let identity = &pages.settings.gate.identity;
    let error = match identity.prove_again(&viewer.0, &form.secret("password")).await {
        Ok(()) => return on_to(&path(&id)),
        Err(error) => error,
    };
    let fault = match &error {
        IdentityError::WrongPassword => "That is not your password.".to_owned(),
        other => form_page::sentence(other),
    };
    let said = Said {
        typed: Typed {
            password_fault: Some(fault),
            ..Typed::default()
        },
        ..Said::default()
    };
    let response = page(&pages, &viewer, &id, (form_page::status_of(&error), said)).await;
    form_page::with_retry_after(response, &error)
}

async fn page(pages: &UnlockPages, viewer: &Viewer, id: &str, (code, said): (StatusCode, Said)) -> Response {
    let standing = match pages.unlocks.standing_for(&viewer.0, id).await {
        Ok(standing) => standing,
        Err(error) => {
            let text = refusal(&error).text;
            let html = missing::missing(&chrome(viewer), "There is no such unlock", &text, None);
            return form_page::answer(status(&error), html);
        }
    };
    let shown = shown(pages, viewer, standing, said);
    let again = looks_again(&shown);
    let mut response = form_page::answer(code, step(&chrome(viewer), &shown));
    if let Some(every) = again.filter(|_| code == StatusCode::OK) {
        response.headers_mut().insert(header::REFRESH, every);
    }
    response
}

fn shown(pages: &UnlockPages, viewer: &Viewer, standing: Standing, said: Said) -> Step {
    let Said {
        is_alone,
        typed,
        refusal,
    } = said;
    let proof = proof(pages, viewer, &standing);
    Step {
        link: format!("{}{}", pages.settings.home, path(&standing.unlock.id)),
        tier_reason: standing.tier_reason,
        is_owner: standing.is_owner,
        hindrance: standing
            .hindrance
            .as_ref()
            .map(|error| super::refusal(error).text),
        proof,
        unapproved: standing.unapproved,
        may_approve: standing.may_approve,
        may_review: standing.may_review,
        refused_as_second: standing.refused_as_second,
        approvers: standing.approvers,
        receivers: standing.receivers,
        may_read_record: viewer.0.may(
            Right::AuditRead,
            &standing.unlock.backend,
            &standing.unlock.resource.text(),
        ),
        now: standing.now,
        unlock: standing.unlock,
        is_alone,
        typed,
        refusal,
    }
}

fn proof(pages: &UnlockPages, viewer: &Viewer, standing: &Standing) -> Proof {
    match standing.proved_ago {
        Some(ago) if standing.is_proved => Proof::Fresh(ms(ago)),
        _ => reauthentication::proof(&pages.settings.gate, &viewer.0),
    }
}

fn ms(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

fn looks_again(step: &Step) -> Option<HeaderValue> {
    match step.unlock.state {
        UnlockState::OutcomeUnknown => Some(OUTCOME_EVERY),
        UnlockState::Pending if step.is_owner && is_waiting(step) => Some(APPROVAL_EVERY),
        _ => None,
    }
}

fn is_waiting(step: &Step) -> bool {
    let is_proved = matches!(step.proof, Proof::Fresh(_));
    is_proved && step.hindrance.is_none() && step.unapproved.is_some() && !step.is_alone
}
