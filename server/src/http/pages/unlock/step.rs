//! `/unlocks/{id}`: the second step, its acts, and the outcome.

use app::server_pages::unlock::confirm::step;
use app::server_pages::unlock::{Proof, Step, StepInput, UnlockRefusal, not_found, path};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use domain::access::Permission;
use domain::duration::millis;
use domain::unlock::{Unlock, UnlockState, difference};

use super::{chrome, refusal};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::reauthenticate as reauthentication;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::identity::IdentityError;
use crate::unlock::{Confirmation, UnlockError, UnlockStatus};

/// Refresh interval of a page that waits and has no input field.
const OUTCOME_EVERY: HeaderValue = HeaderValue::from_static("5");
const APPROVAL_EVERY: HeaderValue = HeaderValue::from_static("10");

/// Messages of a page in addition to the state of the unlock.
#[derive(Default)]
struct Said {
    is_alone: bool,
    typed: StepInput,
    refusal: Option<UnlockRefusal>,
}

pub(in crate::http) async fn show(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
    uri: Uri,
) -> Response {
    let said = Said {
        is_alone: uri.query() == Some("alone"),
        ..Said::default()
    };
    page(&state, &viewer, &id, (StatusCode::OK, said)).await
}

pub(in crate::http) async fn confirm(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
    form: Form,
) -> Response {
    let second = form.find("breakGlassReason");
    let confirmation = Confirmation {
        resource: form.typed("resource"),
        break_glass: second.clone(),
    };
    let done = state.unlocks.confirm(&viewer.0, &id, confirmation).await;
    let error = match done {
        Ok(_) => return see_other(&path(&id)),
        // This is a result, which the page shows.
        Err(UnlockError::HolderChanged { .. }) => return see_other(&path(&id)),
        Err(error) => error,
    };
    let mut said = Said {
        is_alone: second.is_some(),
        typed: StepInput {
            name: form.typed("resource"),
            second_reason: second.unwrap_or_default(),
            ..StepInput::default()
        },
        refusal: None,
    };
    match &error {
        UnlockError::NameMismatch { left } if *left > 0 => {
            let unlock = state.unlocks.get(&viewer.0, &id).await.ok();
            said.typed.name_fault = Some(wrong_name(&error, &said.typed.name, unlock.as_ref()));
        }
        UnlockError::WeakReason { weakness, .. } => said.typed.second_fault = Some(format!("{weakness}.")),
        other => said.refusal = Some(refusal(other)),
    }
    page(&state, &viewer, &id, (status(&error), said)).await
}

/// The refusal, with where what was typed leaves the name.
fn wrong_name(error: &UnlockError, typed: &str, unlock: Option<&Unlock>) -> String {
    let differs = unlock.and_then(|unlock| difference(typed, &unlock.resource));
    match differs {
        Some(differs) => format!("{error}: {differs}"),
        None => error.to_string(),
    }
}

pub(in crate::http) async fn approve(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    let done = state.unlocks.approve(&viewer.0, &id).await;
    done_or_refused(&state, &viewer, &id, done).await
}

pub(in crate::http) async fn cancel(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    let done = state.unlocks.cancel(&viewer.0, &id).await;
    done_or_refused(&state, &viewer, &id, done).await
}

pub(in crate::http) async fn review(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
) -> Response {
    let done = state.unlocks.review(&viewer.0, &id).await;
    done_or_refused(&state, &viewer, &id, done).await
}

async fn done_or_refused(
    state: &Services,
    viewer: &CurrentUser,
    id: &str,
    done: Result<Unlock, UnlockError>,
) -> Response {
    let error = match done {
        Ok(_) => return see_other(&path(id)),
        Err(error) => error,
    };
    let said = Said {
        refusal: Some(refusal(&error)),
        ..Said::default()
    };
    page(state, viewer, id, (status(&error), said)).await
}

/// The password once more, in the same session.
pub(in crate::http) async fn prove(
    State(state): State<AppState>,
    viewer: CurrentUser,
    PathId(id): PathId,
    form: Form,
) -> Response {
    let identity = &state.auth.identity;
    let error = match identity.prove_again(&viewer.0, &form.secret("password")).await {
        Ok(()) => return see_other(&path(&id)),
        Err(error) => error,
    };
    let fault = match &error {
        IdentityError::WrongPassword => "That is not your password.".to_owned(),
        other => response::sentence(other),
    };
    let said = Said {
        typed: StepInput {
            password_fault: Some(fault),
            ..StepInput::default()
        },
        ..Said::default()
    };
    let response = page(&state, &viewer, &id, (response::status_of(&error), said)).await;
    response::with_retry_after(response, &error)
}

async fn page(
    state: &Services,
    viewer: &CurrentUser,
    id: &str,
    (code, said): (StatusCode, Said),
) -> Response {
    let standing = match state.unlocks.status_for(&viewer.0, id).await {
        Ok(standing) => standing,
        Err(error) => {
            let text = refusal(&error).text;
            let html = not_found::not_found_page(&chrome(viewer), "No unlock has this id", &text, None);
            return response::html_response(status(&error), html);
        }
    };
    let shown = step_page(state, viewer, standing, said);
    let again = looks_again(&shown);
    let mut response = response::html_response(code, step(&chrome(viewer), &shown));
    if let Some(every) = again.filter(|_| code == StatusCode::OK) {
        response.headers_mut().insert(header::REFRESH, every);
    }
    response
}

fn step_page(state: &Services, viewer: &CurrentUser, standing: UnlockStatus, said: Said) -> Step {
    let Said {
        is_alone,
        typed,
        refusal,
    } = said;
    let proof = proof(state, viewer, &standing);
    Step {
        link: format!("{}{}", state.auth.home, path(&standing.unlock.id)),
        protection_reason: standing.protection_reason,
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
            Permission::AuditRead,
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

fn proof(state: &Services, viewer: &CurrentUser, standing: &UnlockStatus) -> Proof {
    match standing.proved_ago {
        Some(ago) if standing.is_proved => Proof::Fresh(millis(ago)),
        _ => reauthentication::proof(&state.auth, &viewer.0),
    }
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
