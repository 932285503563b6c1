//! `/unlocks/{id}`: the second step, its acts, and the outcome.

use app::console::ConsoleError;
use app::pages::unlock::data::{Proof, StepData, UnlockStep};
use app::pages::unlock::{break_glass_path, path};
use axum::extract::State;
use axum::response::Response;
use domain::access::Permission;
use domain::duration::millis;
use domain::unlock::{Unlock, difference};

use super::{field_fault, page_rows, refusal, unavailable, why};
use crate::http::pages::form_request::FormRequest;
use crate::http::pages::{reauthenticate, response};
use crate::http::path_id::PathId;
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::identity::{IdentityError, Principal};
use crate::unlock::{Confirmation, UnlockError, UnlockStatus};

impl Services {
    pub(super) async fn unlock_step_data(&self, who: &Principal, id: &str) -> Result<StepData, ConsoleError> {
        match self.unlocks.status_for(who, id).await {
            Ok(status) => Ok(StepData::Unlock(Box::new(self.step(who, status)))),
            Err(error) => match unavailable(&error) {
                Some(temporary) => Err(temporary),
                None => Ok(StepData::Nothing(page_rows::nothing(&error, None))),
            },
        }
    }

    fn step(&self, who: &Principal, status: UnlockStatus) -> UnlockStep {
        let unlock = &status.unlock;
        UnlockStep {
            now: status.now,
            link: format!("{}{}", self.auth.home, path(&unlock.id)),
            protection: status.protection_reason.as_ref().map(ToString::to_string),
            is_owner: status.is_owner,
            hindrance: status.hindrance.as_ref().map(why),
            proof: match status.proved_ago {
                Some(ago) if status.is_proved => Proof::Fresh(millis(ago)),
                _ => reauthenticate::proof(&self.auth, who),
            },
            may_approve: status.may_approve,
            may_review: status.may_review,
            receivers: status.receivers,
            may_read_audit: who.may(Permission::AuditRead, &unlock.backend, &unlock.resource.text()),
            unapproved: status.unapproved,
            refused_as_second: status.refused_as_second,
            approvers: status.approvers,
            unlock: page_rows::unlock_data(status.unlock),
        }
    }
}

pub(in crate::http) async fn confirm(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let second = form.form.find("breakGlassReason");
    let page = match &second {
        Some(_) => break_glass_path(&id),
        None => path(&id),
    };
    let typed_name = form.form.untrimmed("resource");
    let confirmation = Confirmation {
        resource: typed_name.clone(),
        break_glass: second,
    };
    let error = match state.unlocks.confirm(&form.who, &id, confirmation).await {
        // Both are results, which the page shows.
        Ok(_) | Err(UnlockError::HolderChanged { .. }) => return form.moved(&path(&id)),
        Err(error) => error,
    };
    let reply = match &error {
        UnlockError::NameMismatch { left } if *left > 0 => {
            let unlock = state.unlocks.get(&form.who, &id).await.ok();
            field_fault("resource", name_fault(&error, &typed_name, unlock.as_ref()))
        }
        UnlockError::WeakReason { weakness, .. } => field_fault("breakGlassReason", format!("{weakness}.")),
        other => refusal(other),
    };
    form.reply(&state, &page, status(&error), reply).await
}

/// The refusal, with the first difference between the typed name and the lock's.
pub(super) fn name_fault(error: &UnlockError, typed_name: &str, unlock: Option<&Unlock>) -> String {
    let differs = unlock.and_then(|unlock| difference(typed_name, &unlock.resource));
    match differs {
        Some(differs) => format!("{error}: {differs}"),
        None => error.to_string(),
    }
}

pub(in crate::http) async fn approve(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let result = state.unlocks.approve(&form.who, &id).await;
    step_reply(&state, form, &id, result).await
}

pub(in crate::http) async fn cancel(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let result = state.unlocks.cancel(&form.who, &id).await;
    step_reply(&state, form, &id, result).await
}

pub(in crate::http) async fn review(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let result = state.unlocks.review(&form.who, &id).await;
    step_reply(&state, form, &id, result).await
}

async fn step_reply(
    state: &AppState,
    form: FormRequest,
    id: &str,
    result: Result<Unlock, UnlockError>,
) -> Response {
    match result {
        Ok(_) => form.moved(&path(id)),
        Err(error) => {
            form.reply(state, &path(id), status(&error), refusal(&error))
                .await
        }
    }
}

/// The password once more, in the same session.
pub(in crate::http) async fn prove(
    State(state): State<AppState>,
    PathId(id): PathId,
    form: FormRequest,
) -> Response {
    let identity = &state.auth.identity;
    let error = match identity
        .prove_again(&form.who, &form.form.secret("password"))
        .await
    {
        Ok(()) => return form.moved(&path(&id)),
        Err(error) => error,
    };
    let fault = match &error {
        IdentityError::WrongPassword => "That is not your password.".to_owned(),
        other => response::sentence(other),
    };
    let status = response::status_of(&error);
    let reply = field_fault("password", fault);
    let response = form.reply(&state, &path(&id), status, reply).await;
    response::with_retry_after(response, &error)
}
