//! `/unlocks` and `/unlocks/bulk`: several forced unlocks, selected one by one and confirmed each by its own name. Each
//! takes the same steps as a single one.

use app::console::ConsoleError;
use app::forms::reply::FormReply;
use app::links;
use app::pages::unlock::bulk::{CONFIRM_URL, NOT_BEGUN, SELECT, SelectedHolding, confirm_path, typed_field};
use app::pages::unlock::data::{BulkConfirmData, BulkItem, BulkSelectData};
use app::pages::unlock::sentence;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use domain::access::Permission;
use domain::escape::visible;
use domain::names::BackendName;
use domain::unlock::UnlockState;

use super::step::name_fault;
use super::{field_fault, page_rows, unavailable, why};
use crate::http::pages::form_request::FormRequest;
use crate::http::state::{AppState, Services};
use crate::http::unlock::status;
use crate::identity::Principal;
use crate::unlock::limits::BULK_MAX;
use crate::unlock::{CandidateFilter, Confirmation, UnlockError, UnlockRequest, UnlockStatus};
use inventory::Cancellation;

impl Services {
    pub(super) async fn unlock_candidates_data(
        &self,
        who: &Principal,
        search: &str,
    ) -> Result<BulkSelectData, ConsoleError> {
        let url = links::PageUrl::new(SELECT, search);
        let [backend, prefix, owner] = ["backend", "prefix", "owner"].map(|name| url.value(name).to_owned());
        let only_on = match backend.as_str() {
            "" => None,
            // Without this filter, the list would offer locks of every backend.
            name => Some(BackendName::parse(name).map_err(|_| ConsoleError::NotFound {
                what: format!("no backend is named {}", visible(name)),
            })?),
        };
        let candidate_filter = CandidateFilter {
            backend: only_on,
            prefix: prefix.clone(),
            owner: owner.clone(),
        };
        let (unlocks, principal) = (self.unlocks.clone(), who.clone());
        let search =
            move |abandon: &Cancellation| unlocks.find_candidates(&principal, candidate_filter, abandon);
        let found = self.unlock_searches.run(search).await?;
        Ok(BulkSelectData {
            backends: self.backend_choices(who, Permission::View),
            backend,
            prefix,
            owner,
            rows: found.locks.into_iter().map(page_rows::candidate).collect(),
            total: found.total,
            is_complete: found.is_complete,
        })
    }

    /// In this order; locks that do not exist or are not visible are left out.
    pub(super) async fn bulk_unlocks_data(
        &self,
        who: &Principal,
        search: &str,
    ) -> Result<BulkConfirmData, ConsoleError> {
        let pairs = links::pairs(search).into_iter();
        let ids = pairs.filter(|(name, _)| name == "id").map(|(_, id)| id);
        let mut items = Vec::new();
        for id in ids.take(BULK_MAX) {
            match self.unlocks.status_for(who, &id).await {
                Ok(status) => items.push(item(status)),
                Err(error) => {
                    if let Some(temporary) = unavailable(&error) {
                        return Err(temporary);
                    }
                }
            }
        }
        Ok(BulkConfirmData { items })
    }
}

fn item(status: UnlockStatus) -> BulkItem {
    let elsewhere = match &status.hindrance {
        _ if status.unlock.state != UnlockState::Pending => None,
        _ if !status.is_owner => Some(format!("only {} can confirm it", status.unlock.by_name)),
        Some(error) => Some(why(error)),
        None => status
            .protection_reason
            .map(|reason| format!("{reason}: confirm it separately, with a second approver")),
    };
    BulkItem {
        unlock: page_rows::unlock_data(status.unlock),
        elsewhere,
    }
}

pub(in crate::http) async fn begin(State(state): State<AppState>, form: FormRequest) -> Response {
    let filters = ["backend", "prefix", "owner"].map(|name| (name, form.form.untrimmed(name)));
    let page = links::with_query(SELECT, filters.iter().map(|(name, value)| (name, value)));
    let selected: Option<Vec<SelectedHolding>> = form.form.all("item").map(SelectedHolding::parse).collect();
    let selected = selected.filter(|selected| (1..=BULK_MAX).contains(&selected.len()));
    let Some(selected) = selected else {
        let reply = FormReply {
            alert: Some(format!("Tick at least one lock, and at most {BULK_MAX}.")),
            ..FormReply::default()
        };
        return form
            .reply(&state, &page, StatusCode::UNPROCESSABLE_ENTITY, reply)
            .await;
    };
    let reason = form.form.untrimmed("reason");
    let (mut begun_ids, mut values) = (Vec::new(), Vec::new());
    let mut worst = StatusCode::OK;
    for holding in selected {
        let subject = format!("{} on {}", visible(&holding.resource), holding.backend);
        let error = match state.unlocks.begin(&form.who, request(holding, &reason)).await {
            Ok(unlock) => {
                begun_ids.push(unlock.id);
                continue;
            }
            Err(error) => error,
        };
        worst = worst.max(status(&error));
        if let UnlockError::WeakReason { weakness, .. } = &error {
            let reply = field_fault("reason", sentence(&weakness.to_string()));
            return form.reply(&state, &page, worst, reply).await;
        }
        values.push((NOT_BEGUN.to_owned(), format!("{subject}: {}", why(&error))));
    }
    let next = confirm_path(begun_ids.iter().map(String::as_str));
    if values.is_empty() {
        return form.moved(&next);
    }
    let (page, status) = if begun_ids.is_empty() {
        (page, worst)
    } else {
        values.push((CONFIRM_URL.to_owned(), next.clone()));
        (next, StatusCode::OK)
    };
    let reply = FormReply {
        values,
        ..FormReply::default()
    };
    form.reply(&state, &page, status, reply).await
}

fn request(holding: SelectedHolding, reason: &str) -> UnlockRequest {
    UnlockRequest {
        backend: holding.backend,
        source: Some(holding.source),
        resource: holding.resource,
        generation: holding.generation,
        reason: reason.to_owned(),
    }
}

pub(in crate::http) async fn confirm(State(state): State<AppState>, form: FormRequest) -> Response {
    let ids: Vec<String> = form.form.all("id").take(BULK_MAX).map(str::to_owned).collect();
    let mut faults = Vec::new();
    let mut worst = StatusCode::OK;
    for id in &ids {
        let field = typed_field(id);
        let typed_name = form.form.untrimmed(&field);
        if typed_name.is_empty() {
            continue;
        }
        let unlock = match state.unlocks.get(&form.who, id).await {
            Ok(unlock) => unlock,
            // An unlock of which the user may not know is left out.
            Err(UnlockError::NotFound { .. }) => continue,
            Err(error) => {
                worst = worst.max(status(&error));
                faults.push((field, why(&error)));
                continue;
            }
        };
        let confirmation = Confirmation {
            resource: typed_name.clone(),
            break_glass: None,
        };
        let error = match state.unlocks.confirm(&form.who, id, confirmation).await {
            // Both are results, which the page shows.
            Ok(_) | Err(UnlockError::HolderChanged { .. }) => continue,
            Err(error) => error,
        };
        worst = worst.max(status(&error));
        let fault = match &error {
            UnlockError::NameMismatch { .. } => name_fault(&error, &typed_name, Some(&unlock)),
            other => why(other),
        };
        faults.push((field, fault));
    }
    let page = confirm_path(ids.iter().map(String::as_str));
    if faults.is_empty() {
        return form.moved(&page);
    }
    let reply = FormReply {
        faults,
        ..FormReply::default()
    };
    form.reply(&state, &page, worst, reply).await
}
