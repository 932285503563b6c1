//! `/unlocks` and `/unlocks/several`: several forced unlocks, ticked one by one and confirmed each by its own name. Every
//! one goes the way of a single one; here is no other act.

use app::links;
use app::server_pages::unlock::bulk::{
    BulkItem, Choose, NotBegun, Ticked, choose, confirm_path, several, typed_field,
};
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use domain::access::Permission;
use domain::names::BackendName;
use domain::unlock::{Unlock, UnlockState, difference};

use super::{capital, chrome, refusal};
use crate::http::current_user::CurrentUser;
use crate::http::form_body::Form;
use crate::http::pages::response;
use crate::http::pages::response::see_other;
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::unlock::limits::BULK_MAX;
use crate::unlock::{Confirmation, Narrowed, UnlockError, UnlockRequest};

pub(in crate::http) async fn show(State(state): State<AppState>, viewer: CurrentUser, uri: Uri) -> Response {
    let pairs = links::pairs(uri.query().unwrap_or_default());
    let get = |wanted: &str| {
        let found = pairs.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let asked = Choose {
        backend: get("backend"),
        prefix: get("prefix"),
        owner: get("owner"),
        ..Choose::default()
    };
    list(&state, &viewer, StatusCode::OK, asked)
}

fn list(state: &Services, viewer: &CurrentUser, status: StatusCode, asked: Choose) -> Response {
    let narrowed = Narrowed {
        backend: BackendName::parse(&asked.backend).ok(),
        prefix: asked.prefix.clone(),
        owner: asked.owner.clone(),
    };
    let (locks, total) = state.unlocks.choice(&viewer.0, narrowed);
    let shown = Choose {
        backends: state.backend_choices(&viewer.0, Permission::View),
        locks,
        total,
        ..asked
    };
    response::html_response(status, choose(&chrome(viewer), &shown))
}

pub(in crate::http) async fn begin(
    State(state): State<AppState>,
    viewer: CurrentUser,
    form: Form,
) -> Response {
    let mut asked = Choose {
        backend: form.typed("backend"),
        prefix: form.typed("prefix"),
        owner: form.typed("owner"),
        ticked: form.all("item").map(str::to_owned).collect(),
        reason: form.typed("reason"),
        ..Choose::default()
    };
    let ticked: Option<Vec<Ticked>> = asked.ticked.iter().map(|value| Ticked::parse(value)).collect();
    let ticked = match ticked {
        Some(ticked) if (1..=BULK_MAX).contains(&ticked.len()) => ticked,
        _ => {
            asked.refusal = Some(format!("Tick at least one lock, and at most {BULK_MAX}."));
            return list(&state, &viewer, StatusCode::UNPROCESSABLE_ENTITY, asked);
        }
    };
    let (mut begun, mut not_begun) = (Vec::new(), Vec::new());
    let mut worst = StatusCode::OK;
    for one in ticked {
        let (backend, resource) = (one.backend.to_string(), one.resource.clone());
        let error = match state
            .unlocks
            .begin(&viewer.0, from_ticked(one, &asked.reason))
            .await
        {
            Ok(unlock) => {
                begun.push(unlock.id);
                continue;
            }
            Err(error) => error,
        };
        worst = worst.max(status(&error));
        if let UnlockError::WeakReason { weakness, .. } = &error {
            asked.reason_fault = Some(format!("{}.", capital(&weakness.to_string())));
            return list(&state, &viewer, worst, asked);
        }
        not_begun.push(NotBegun {
            backend,
            resource,
            why: refusal(&error).text,
        });
    }
    if begun.is_empty() {
        return list(&state, &viewer, worst, Choose { not_begun, ..asked });
    }
    if not_begun.is_empty() {
        return see_other(&confirm_path(begun.iter().map(String::as_str)));
    }
    let ones = ones(&state, &viewer, begun).await;
    response::html_response(StatusCode::OK, several(&chrome(&viewer), &ones, &not_begun))
}

fn from_ticked(one: Ticked, reason: &str) -> UnlockRequest {
    UnlockRequest {
        backend: one.backend,
        source: Some(one.source),
        resource: one.resource,
        generation: one.generation,
        reason: reason.to_owned(),
    }
}

pub(in crate::http) async fn see(State(state): State<AppState>, viewer: CurrentUser, uri: Uri) -> Response {
    let pairs = links::pairs(uri.query().unwrap_or_default());
    let ids = pairs
        .into_iter()
        .filter(|(name, _)| name == "id")
        .map(|(_, id)| id);
    let ones = ones(&state, &viewer, ids.take(BULK_MAX).collect()).await;
    response::html_response(StatusCode::OK, several(&chrome(&viewer), &ones, &[]))
}

pub(in crate::http) async fn confirm(
    State(state): State<AppState>,
    viewer: CurrentUser,
    form: Form,
) -> Response {
    let ids: Vec<String> = form.all("id").take(BULK_MAX).map(str::to_owned).collect();
    let mut ones = ones(&state, &viewer, ids.clone()).await;
    let mut worst = None;
    for one in &mut ones {
        one.typed = form.typed(&typed_field(&one.unlock));
        if one.typed.is_empty() {
            continue;
        }
        let confirmation = Confirmation {
            resource: one.typed.clone(),
            break_glass: None,
        };
        let error = match state
            .unlocks
            .confirm(&viewer.0, &one.unlock.id, confirmation)
            .await
        {
            // Outcomes, both: they stand on the page.
            Ok(_) | Err(UnlockError::HolderChanged { .. }) => continue,
            Err(error) => error,
        };
        worst = worst.max(Some(status(&error)));
        one.fault = Some(fault(&error, &one.typed, &one.unlock));
    }
    let Some(worst) = worst else {
        return see_other(&confirm_path(ids.iter().map(String::as_str)));
    };
    let said = ones;
    let mut ones = self::ones(&state, &viewer, ids).await;
    for (one, said) in ones.iter_mut().zip(said) {
        (one.typed, one.fault) = (said.typed, said.fault);
    }
    response::html_response(worst, several(&chrome(&viewer), &ones, &[]))
}

fn fault(error: &UnlockError, typed: &str, unlock: &Unlock) -> String {
    let differs = match error {
        UnlockError::NameMismatch { .. } => difference(typed, &unlock.resource),
        _ => None,
    };
    match differs {
        Some(differs) => format!("{}: {differs}", refusal(error).text),
        None => refusal(error).text,
    }
}

/// In this order; locks that do not exist or are not visible are left out.
async fn ones(state: &Services, viewer: &CurrentUser, ids: Vec<String>) -> Vec<BulkItem> {
    let mut ones = Vec::with_capacity(ids.len());
    for id in ids {
        let Ok(standing) = state.unlocks.status_for(&viewer.0, &id).await else {
            continue;
        };
        let elsewhere = match &standing.hindrance {
            _ if standing.unlock.state != UnlockState::Pending => None,
            _ if !standing.is_owner => Some(format!("only {} can confirm it", standing.unlock.by_name)),
            Some(why) => Some(refusal(why).text),
            None => standing
                .protection_reason
                .map(|reason| format!("{reason}: confirm it separately, with a second approver")),
        };
        ones.push(BulkItem {
            unlock: standing.unlock,
            elsewhere,
            typed: String::new(),
            fault: None,
        });
    }
    ones
}
