//! Acknowledgements: of one alert, or of every firing alert of a group; and their withdrawal.

use domain::access::Visible;
use domain::audit::Action;
use serde_json::json;

use super::alert_cache::raise_revision;
use super::silences::may_act;
use super::{AlertError, Alerts, OpenAlert};
use crate::audit::Entry;
use crate::identity::Principal;
use runtime::db::on_either;

/// Alerts to acknowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertSelection {
    One(i64),
    /// Key of a group: its firing alerts.
    Group(String),
}

const NOTE_CHARS_MAX: usize = 500;

impl Alerts {
    /// Acknowledges the selected alerts that are not acknowledged yet. Returns their number.
    ///
    /// # Errors
    /// `NotFound` (also for alerts that the caller may not see), `Forbidden` if the caller may act on none of them, or the
    /// store does not answer.
    pub async fn acknowledge(
        &self,
        who: &Principal,
        selection: &AlertSelection,
        note: &str,
    ) -> Result<usize, AlertError> {
        let chars = note.trim().chars().filter(|c| !c.is_control());
        let note: String = chars.take(NOTE_CHARS_MAX).collect();
        let selected = self.selected(who, selection).await?;
        let selected = selected.into_iter().filter(|open| open.kept.acked.is_none());
        let selected: Vec<OpenAlert> = selected.collect();
        let set = Some((self.now(), note));
        self.set_acknowledgement(who, &selected, set).await?;
        Ok(selected.len())
    }

    /// Withdraws acknowledgements. Returns their number.
    ///
    /// # Errors
    /// As [`acknowledge`](Self::acknowledge).
    pub async fn withdraw_acknowledgement(
        &self,
        who: &Principal,
        selection: &AlertSelection,
    ) -> Result<usize, AlertError> {
        let selected = self.selected(who, selection).await?;
        let selected = selected.into_iter().filter(|open| open.kept.acked.is_some());
        let selected: Vec<OpenAlert> = selected.collect();
        self.set_acknowledgement(who, &selected, None).await?;
        Ok(selected.len())
    }

    async fn selected(
        &self,
        who: &Principal,
        selection: &AlertSelection,
    ) -> Result<Vec<OpenAlert>, AlertError> {
        let mut open = self.open(&Visible::to(&who.grants)).await?;
        open.retain(|open| match selection {
            AlertSelection::One(id) => open.kept.alert.id == *id,
            AlertSelection::Group(key) => open.kept.alert.is_firing() && open.group() == *key,
        });
        if open.is_empty() {
            return Err(AlertError::NotFound("open alert"));
        }
        let refusal = open.iter().find_map(|open| may_act(who, &open.kept.alert).err());
        open.retain(|open| may_act(who, &open.kept.alert).is_ok());
        match refusal {
            Some(refusal) if open.is_empty() => Err(refusal),
            _ => Ok(open),
        }
    }

    /// One transaction, with an audit entry for each alert.
    async fn set_acknowledgement(
        &self,
        who: &Principal,
        selected: &[OpenAlert],
        set: Option<(i64, String)>,
    ) -> Result<(), AlertError> {
        if selected.is_empty() {
            return Ok(());
        }
        let outcome = if set.is_some() { "ok" } else { "withdrawn" };
        let (at, by, note) = match &set {
            Some((at, note)) => (Some(*at), Some(who.name()), Some(note.as_str())),
            None => (None, None, None),
        };
        let mut tx = self.db.begin().await?;
        let mut all = Vec::new();
        for OpenAlert { kept, rule, .. } in selected {
            let alert = &kept.alert;
            let entry = Entry {
                after: Some(
                    json!({"alert": alert.id, "rule": rule.name, "subject": alert.subject.display_name()}),
                ),
                reason: note.filter(|note| !note.is_empty()).map(str::to_owned),
                ..Entry::new(Action::AlertAcked, outcome, who.actor(None), who.origin.clone())
            };
            all.push(self.audit.append_in(&mut tx, entry).await?);
        }
        raise_revision(&mut tx).await?;
        let update = "UPDATE alerts SET acked_at = $1, acked_by = $2, ack_note = $3 WHERE id = $4";
        for open in selected {
            on_either!(&mut tx, Tx, |tx| {
                let query = sqlx::query(update).bind(at).bind(by).bind(note);
                query
                    .bind(open.kept.alert.id)
                    .execute(&mut **tx)
                    .await?
                    .rows_affected()
            });
        }
        tx.commit().await?;
        self.cache.mark_written();
        for appended in &all {
            self.audit.export(appended).await;
        }
        Ok(())
    }
}
