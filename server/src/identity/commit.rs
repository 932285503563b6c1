//! Commits a change of users, tokens or permissions together with its audit entry and its notifications.

use domain::audit::Action;
use serde_json::Value;

use super::Identity;
use super::access_change::AccessChange;
use super::error::IdentityError;
use super::principal::Principal;
use crate::audit::Entry;
use crate::notify::enqueue;
use runtime::db::Tx;

impl Identity {
    /// Commits a change together with its audit entry.
    pub(super) async fn record(
        &self,
        tx: Tx,
        who: &Principal,
        action: Action,
        before: Option<Value>,
        after: Option<Value>,
    ) -> Result<(), IdentityError> {
        self.record_and_notify(tx, who, (action, before, after), None)
            .await
    }

    /// Commits a change together with its audit entry and its notifications.
    pub(super) async fn record_and_notify(
        &self,
        mut tx: Tx,
        who: &Principal,
        (action, before, after): (Action, Option<Value>, Option<Value>),
        change: Option<AccessChange<'_>>,
    ) -> Result<(), IdentityError> {
        let entry = Entry {
            before,
            after,
            ..Entry::new(action, "ok", who.actor(None), who.origin.clone())
        };
        let appended = self.audit.append_in(&mut tx, entry).await?;
        if let Some(change) = &change {
            let now = self.now_ms();
            enqueue(&mut tx, &change.notice(now)?, now).await?;
        }
        tx.commit().await?;
        if change.is_some()
            && let Some(outbox) = self.outbox.get()
        {
            outbox.notify_one();
        }
        self.changed(appended).await
    }
}
