//! `/unlocks` and `/unlocks/several`: several forced unlocks, ticked one by one and confirmed each by its own name. Every
//! one goes the way of a single one; here is no other act.

use std::sync::Arc;

use app::forms::unlock::several::{
    Choose, NotBegun, One, Ticked, choose, confirm_path, several, typed_field,
};
use app::links;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use domain::access::Right;
use domain::names::BackendName;
use domain::unlock::{Unlock, UnlockState, difference};

use super::{UnlockPages, capital, chrome, refusal};
use crate::http::form_page;
use crate::http::settings::form::Form;
use crate::http::settings::{Viewer, on_to};
use crate::http::unlock::status;
use crate::unlock::limits::BULK_MAX;
use crate::unlock::{Asked, Confirmation, Narrowed, UnlockError};

pub(super) async fn show(State(pages): State<Arc<UnlockPages>>, viewer: Viewer, uri: Uri) -> Response {
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
    list(&pages, &viewer, StatusCode::OK, asked)
}

fn list(pages: &UnlockPages, viewer: &Viewer, status: StatusCode, asked: Choose) -> Response {
    let narrowed = Narrowed {
        backend: BackendName::parse(&asked.backend).ok(),
        prefix: asked.prefix.clone(),
        owner: asked.owner.clone(),
    };
    let (locks, total) = pages.unlocks.choice(&viewer.0, narrowed);
    let shown = Choose {
        backends: pages.settings.backend_choices(&viewer.0, Right::View),
        locks,
        total,
        ..asked
    };
    form_page::answer(status, choose(&chrome(viewer), &shown))
}

pub(super) async fn begin(State(pages): State<Arc<UnlockPages>>, viewer: Viewer, form: Form) -> Response {
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
            return list(&pages, &viewer, StatusCode::UNPROCESSABLE_ENTITY, asked);
        }
    };
    let (mut begun, mut not_begun) = (Vec::new(), Vec::new());
    let mut worst = StatusCode::OK;
    for one in ticked {
        let (backend, resource) = (one.backend.to_string(), one.resource.clone());
        let error = match pages.unlocks.begin(&viewer.0, of(one, &asked.reason)).await {
            Ok(unlock) => {
                begun.push(unlock.id);
                continue;
            }
            Err(error) => error,
        };
        worst = worst.max(status(&error));
        if let UnlockError::WeakReason { weakness, .. } = &error {
            asked.reason_fault = Some(format!("{}.", capital(&weakness.to_string())));
            return list(&pages, &viewer, worst, asked);
        }
        not_begun.push(NotBegun {
            backend,
            resource,
            why: refusal(&error).text,
        });
    }
    if begun.is_empty() {
        return list(&pages, &viewer, worst, Choose { not_begun, ..asked });
    }
    if not_begun.is_empty() {
        return on_to(&confirm_path(begun.iter().map(String::as_str)));
    }
    let ones = ones(&pages, &viewer, begun).await;
    form_page::answer(StatusCode::OK, several(&chrome(&viewer), &ones, &not_begun))
}

fn of(one: Ticked, reason: &str) -> Asked {
    Asked {
        backend: one.backend,
        source: Some(one.source),
        resource: one.resource,
        generation: one.generation,
        reason: reason.to_owned(),
    }
}

pub(super) async fn see(State(pages): State<Arc<UnlockPages>>, viewer: Viewer, uri: Uri) -> Response {
    let pairs = links::pairs(uri.query().unwrap_or_default());
    let ids = pairs
        .into_iter()
        .filter(|(name, _)| name == "id")
        .map(|(_, id)| id);
    let ones = ones(&pages, &viewer, ids.take(BULK_MAX).collect()).await;
    form_page::answer(StatusCode::OK, several(&chrome(&viewer), &ones, &[]))
}

pub(super) async fn confirm(State(pages): State<Arc<UnlockPages>>, viewer: Viewer, form: Form) -> Response {
    let ids: Vec<String> = form.all("id").take(BULK_MAX).map(str::to_owned).collect();
    let mut ones = ones(&pages, &viewer, ids.clone()).await;
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
        let error = match pages
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
        return on_to(&confirm_path(ids.iter().map(String::as_str)));
    };
    let said = ones;
    let mut ones = self::ones(&pages, &viewer, ids).await;
    for (one, said) in ones.iter_mut().zip(said) {
        (one.typed, one.fault) = (said.typed, said.fault);
    }
    form_page::answer(worst, several(&chrome(&viewer), &ones, &[]))
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

/// In this order; what is not there, or not to be seen, is left out.
async fn ones(pages: &UnlockPages, viewer: &Viewer, ids: Vec<String>) -> Vec<One> {
    let mut ones = Vec::with_capacity(ids.len());
    for id in ids {
        let Ok(standing) = pages.unlocks.standing_for(&viewer.0, &id).await else {
            continue;
        };
        let elsewhere = match &standing.hindrance {
            _ if standing.unlock.state != UnlockState::Pending => None,
            _ if !standing.is_owner => Some(format!("only {} can confirm it", standing.unlock.by_name)),
            Some(why) => Some(refusal(why).text),
            None => standing
                .tier_reason
                .map(|reason| format!("{reason}: it is confirmed alone, with a second person")),
        };
        ones.push(One {
            unlock: standing.unlock,
            elsewhere,
            typed: String::new(),
            fault: None,
        });
    }
    ones
}
