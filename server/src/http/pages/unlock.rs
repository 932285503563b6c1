//! `/unlock/…` and `/unlocks/…`: data and forms of the forced unlock's pages. Handlers parse, ask the unlocks, send on to the
//! next page so that reloading repeats nothing, or give the form back with its error.

pub(in crate::http) mod bulk;
mod page_rows;
pub(in crate::http) mod review;
pub(in crate::http) mod step;

use app::console::{ConsoleError, ConsoleFuture};
use app::forms::reply::FormReply;
use app::pages::unlock::data::{BulkConfirmData, BulkSelectData, ReviewData, StepData, UnlockPort};
use app::pages::unlock::{HOLDER_VALUES, holder_value, sentence};
use domain::access::Permission;
use domain::force_release::Holding;
use domain::reported::Reported;

use crate::http::pages::caller_data::CallerData;
use crate::unlock::UnlockError;

impl UnlockPort for CallerData {
    fn unlock_review(
        &self,
        backend: String,
        resource: String,
        search: String,
    ) -> ConsoleFuture<'_, ReviewData> {
        Box::pin(async move {
            let lock = (backend.as_str(), resource);
            self.state.unlock_review_data(&self.who, lock, &search).await
        })
    }

    fn unlock(&self, id: String) -> ConsoleFuture<'_, StepData> {
        Box::pin(async move { self.state.unlock_step_data(&self.who, &id).await })
    }

    fn unlock_candidates(&self, search: String) -> ConsoleFuture<'_, BulkSelectData> {
        Box::pin(async move {
            self.check(Permission::Unlock)?;
            self.state.unlock_candidates_data(&self.who, &search).await
        })
    }

    fn bulk_unlocks(&self, search: String) -> ConsoleFuture<'_, BulkConfirmData> {
        Box::pin(async move { self.state.bulk_unlocks_data(&self.who, &search).await })
    }
}

/// A clause; nothing of the store's own words.
fn why(error: &UnlockError) -> String {
    match error {
        UnlockError::AuditUnavailable(_) => {
            "nothing was changed, because the audit log cannot be written now. Try again in a moment"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// The error of a store that does not answer, which is temporary: an open page keeps the unlock and the typed text. `None`:
/// another error.
fn unavailable(error: &UnlockError) -> Option<ConsoleError> {
    let UnlockError::AuditUnavailable(source) = error else {
        return None;
    };
    tracing::warn!("an unlock cannot be read: {source}");
    let what = "the console's store does not answer: the state of the unlock is unknown".to_owned();
    Some(ConsoleError::Unavailable { what })
}

fn remedy(error: &UnlockError) -> Option<String> {
    match error {
        UnlockError::Unavailable { remedy, .. } | UnlockError::Stale { remedy, .. } => remedy.clone(),
        _ => None,
    }
}

/// Reply to a form that was refused as a whole.
fn refusal(error: &UnlockError) -> FormReply {
    let mut alert = sentence(&why(error));
    if let Some(remedy) = remedy(error) {
        alert = format!("{alert} {}", sentence(&remedy));
    }
    let values = match error {
        UnlockError::HolderChanged { before, now } if before.is_some() || now.is_some() => {
            holders(before.as_deref(), now.as_deref())
        }
        _ => Vec::new(),
    };
    FormReply {
        alert: Some(alert),
        values,
        ..FormReply::default()
    }
}

/// Reply with an error at one field.
fn field_fault(name: &str, fault: String) -> FormReply {
    FormReply {
        faults: vec![(name.to_owned(), fault)],
        ..FormReply::default()
    }
}

fn holders(before: Option<&Holding>, now: Option<&Holding>) -> Vec<(String, String)> {
    let parts: [fn(&Holding) -> Reported<String>; 3] = [
        |holding| holding.owner_id.as_ref().map(ToString::to_string),
        |holding| holding.fencing_token.as_ref().map(ToString::to_string),
        |holding| holding.lease_id.clone(),
    ];
    let value = |holding: Option<&Holding>, part: fn(&Holding) -> Reported<String>| match holding.map(part) {
        Some(Reported::Value(text)) => text,
        Some(Reported::Unknown(_)) => "unknown".to_owned(),
        Some(Reported::NotApplicable(_)) | None => String::new(),
    };
    let rows = HOLDER_VALUES.into_iter().zip(parts);
    rows.flat_map(|([before_name, now_name], part)| {
        [
            holder_value(before_name, value(before, part)),
            holder_value(now_name, value(now, part)),
        ]
    })
    .collect()
}
