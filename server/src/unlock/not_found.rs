//! Steps on an unknown or invisible unlock. Both get the same answer and an audit entry: attempts on an invisible
//! lock are recorded with that lock.

use domain::audit::{Action, AuditPhase};
use domain::unlock::Unlock;
use serde_json::json;

use super::{UnlockError, Unlocks, audit_entries, store};
use crate::audit::{Entry, EntrySubject};
use crate::identity::Principal;

/// Characters of an unknown id that are recorded.
const ID_SHOWN_MAX: usize = 64;

impl Unlocks {
    /// The unlock that a step names.
    ///
    /// # Errors
    /// `NotFound`, also for a name that the caller may not see; recorded in the audit log.
    pub(super) async fn step_on(
        &self,
        who: &Principal,
        step: &'static str,
        id: &str,
    ) -> Result<Unlock, UnlockError> {
        let error = match self.get(who, id).await {
            Err(error @ UnlockError::NotFound { .. }) => error,
            other => return other,
        };
        let stored = store::get(self.db(), id).await?;
        let subject = stored
            .as_ref()
            .map_or_else(|| subject_of_unknown_id(id), audit_entries::subject_of);
        let entry = Entry {
            phase: AuditPhase::Intent,
            subject,
            after: Some(json!({"step": step, "why": error.to_string()})),
            ..Entry::new(
                Action::ForceUnlock,
                error.code(),
                who.actor(None),
                who.origin.clone(),
            )
        };
        self.audit.append_refused(entry).await;
        Err(error)
    }
}

fn subject_of_unknown_id(id: &str) -> EntrySubject {
    let short_id: String = id.chars().take(ID_SHOWN_MAX).collect();
    EntrySubject {
        // NUL is the one character that Postgres text cannot store.
        unlock_id: Some(short_id.replace('\0', "\\u{0}")),
        ..EntrySubject::default()
    }
}
