//! Steps on an unlock that is not there, or that the caller may not see. Both are answered alike, and both are rows: what was
//! tried at somebody else's unlock is in the record of that lock.

use domain::audit::{Action, Phase};
use domain::unlock::Unlock;
use serde_json::json;

use super::{UnlockError, Unlocks, note, store};
use crate::audit::{Entry, Subject};
use crate::identity::Who;

/// An id that somebody made up is recorded as far as this, in characters.
const ID_SHOWN_MAX: usize = 64;

impl Unlocks {
    /// The unlock that a step is about.
    ///
    /// # Errors
    /// `NotFound`, also for a name that the caller may not see; it is in the record.
    pub(super) async fn step_on(
        &self,
        who: &Who,
        step: &'static str,
        id: &str,
    ) -> Result<Unlock, UnlockError> {
        let error = match self.get(who, id).await {
            Err(error @ UnlockError::NotFound { .. }) => error,
            other => return other,
        };
        let unseen = store::get(self.db(), id).await?;
        let subject = unseen.as_ref().map_or_else(|| made_up(id), note::subject_of);
        let entry = Entry {
            phase: Phase::Intent,
            subject,
            after: Some(json!({"step": step, "why": error.to_string()})),
            ..Entry::new(
                Action::ForceUnlock,
                error.code(),
                who.actor(None),
                who.origin.clone(),
            )
        };
        self.append_or_log(entry).await;
        Err(error)
    }
}

fn made_up(id: &str) -> Subject {
    let shown: String = id.chars().take(ID_SHOWN_MAX).collect();
    Subject {
        // The one character that Postgres keeps in no text.
        unlock_id: Some(shown.replace('\0', "\\u{0}")),
        ..Subject::default()
    }
}
