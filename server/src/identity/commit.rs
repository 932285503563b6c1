//! Commits a change of users, tokens or rights: with its audit entry and with what receivers are sent, or not at all.

use domain::audit::Action;
use serde_json::Value;

use super::Identity;
use super::error::IdentityError;
use super::notice::AccessChange;
use super::who::Who;
use crate::audit::Entry;
use crate::db::Tx;
use crate::notify::enqueue;

impl Identity {
    /// Commits a change of people or tokens together with its record.
    pub(super) async fn record(
        &self,
        tx: Tx,
        who: &Who,
        action: Action,
        before: Option<Value>,
        after: Option<Value>,
    ) -> Result<(), IdentityError> {
        self.record_and_notify(tx, who, (action, before, after), None)
            .await
    }

    /// The same with what every receiver is sent: in the one transaction, or not at all.
    pub(super) async fn record_and_notify(
        &self,
        mut tx: Tx,
        who: &Who,
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
