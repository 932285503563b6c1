//! Silences and acknowledgements, limited to the principal's scope.

use domain::access::{Permission, Visible};
use domain::alerts::{
    Active, LABELS, Matcher, Pattern, Silence, SilenceDraft, Subject, silence_stays_within,
};
use domain::audit::Action;
use serde_json::json;
use sqlx::Row as _;

use super::alert_cache::{AlertState, turn_page};
use super::{AlertError, Alerts, OpenAlert};
use crate::audit::Entry;
use crate::identity::Principal;
use runtime::db::{Db, on_either};
use runtime::random::prefixed_id;

impl Alerts {
    /// Silences that have not ended, by end time.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn silences(&self) -> Result<Vec<Silence>, sqlx::Error> {
        Ok(self.glance().await?.silences(self.now()))
    }

    /// Creates a silence that ends `lasts` from now; its author is the caller.
    ///
    /// # Errors
    /// `Invalid`; `Forbidden` where it would reach beyond the caller's scope; the store does not answer.
    pub async fn silence(&self, who: &Principal, draft: &SilenceDraft) -> Result<Silence, AlertError> {
        let (matchers, lasts, comment) = draft.parse().map_err(AlertError::Invalid)?;
        may_silence(who, &matchers)?;
        let now = self.now();
        let silence = Silence {
            id: prefixed_id("s_"),
            matchers,
            starts_at: now,
            ends_at: now + lasts,
            comment,
            by: who.name().to_owned(),
            suppressed: 0,
        };
        let entry = Entry {
            after: Some(to_json(&silence)),
            reason: Some(silence.comment.clone()),
            ..Entry::new(Action::SilenceCreate, "ok", who.actor(None), who.origin.clone())
        };
        let written: Vec<(&str, &str)> = silence
            .matchers
            .iter()
            .map(|matcher| (matcher.label, matcher.value.as_str()))
            .collect();
        let insert = "INSERT INTO silences (id, matchers, starts_at, ends_at, comment, by_id, by_name)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let mut tx = self.db.begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        turn_page(&mut tx).await?;
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(insert)
                .bind(&silence.id)
                .bind(json!(written).to_string())
                .bind(silence.starts_at)
                .bind(silence.ends_at);
            let query = query.bind(&silence.comment).bind(who.id()).bind(who.name());
            query.execute(&mut **tx).await?.rows_affected()
        });
        tx.commit().await?;
        self.shelf.wrote();
        self.audit.export(&appended).await;
        Ok(silence)
    }

    /// Ends a silence now.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden`, or the store does not answer.
    pub async fn end_silence(&self, who: &Principal, id: &str) -> Result<(), AlertError> {
        let found = self
            .silences()
            .await?
            .into_iter()
            .find(|silence| silence.id == id);
        let silence = found.ok_or(AlertError::NotFound("silence"))?;
        may_silence(who, &silence.matchers)?;
        let entry = Entry {
            before: Some(to_json(&silence)),
            ..Entry::new(Action::SilenceEnd, "ok", who.actor(None), who.origin.clone())
        };
        let mut tx = self.db.begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        turn_page(&mut tx).await?;
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query("UPDATE silences SET ends_at = $1 WHERE id = $2");
            let query = query.bind(self.now()).bind(id);
            query.execute(&mut **tx).await?.rows_affected()
        });
        tx.commit().await?;
        self.shelf.wrote();
        self.audit.export(&appended).await;
        Ok(())
    }

    /// How many firing alerts the silence would match.
    ///
    /// # Errors
    /// `Invalid`, or the store does not answer.
    pub async fn would_silence(&self, visible: &Visible, draft: &SilenceDraft) -> Result<usize, AlertError> {
        let mut faults = Vec::new();
        let matchers = draft.matchers(&mut faults);
        if !faults.is_empty() {
            return Err(AlertError::Invalid(faults));
        }
        let silence = Silence {
            id: String::new(),
            matchers,
            starts_at: 0,
            ends_at: 0,
            comment: String::new(),
            by: String::new(),
            suppressed: 0,
        };
        let open = self.open(visible).await?;
        let matched = open
            .iter()
            .filter(|open| open.kept.alert.is_firing() && silence.matches(&open.labels));
        Ok(matched.count())
    }

    /// Acknowledges an alert.
    ///
    /// # Errors
    /// `NotFound` (also for an alert that the caller may not see), `Forbidden`, or the store does not answer.
    pub async fn acknowledge(&self, who: &Principal, id: i64, note: &str) -> Result<(), AlertError> {
        let visible = Visible::to(&who.grants);
        let open = self.open(&visible).await?;
        let found = open.into_iter().find(|open| open.kept.alert.id == id);
        let OpenAlert { kept, rule, .. } = found.ok_or(AlertError::NotFound("open alert"))?;
        may_act(who, &kept.alert)?;
        let note: String = note
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(500)
            .collect();
        let entry = Entry {
            after: Some(
                json!({"alert": id, "rule": rule.name, "subject": kept.alert.subject.display_name()}),
            ),
            reason: Some(note.clone()).filter(|note| !note.is_empty()),
            ..Entry::new(Action::AlertAcked, "ok", who.actor(None), who.origin.clone())
        };
        let mut tx = self.db.begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        turn_page(&mut tx).await?;
        let update = "UPDATE alerts SET acked_at = $1, acked_by = $2, ack_note = $3 WHERE id = $4";
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(update).bind(self.now()).bind(who.name()).bind(&note);
            query.bind(id).execute(&mut **tx).await?.rows_affected()
        });
        tx.commit().await?;
        self.shelf.wrote();
        self.audit.export(&appended).await;
        Ok(())
    }
}

impl AlertState {
    pub(super) fn silences(&self, now: i64) -> Vec<Silence> {
        let all = self.silences.iter();
        all.filter(|silence| silence.ends_at > now).cloned().collect()
    }
}

pub(super) async fn read(db: &Db, now: i64) -> Result<Vec<Silence>, sqlx::Error> {
    let select = "SELECT id, matchers, starts_at, ends_at, comment, by_name, suppressed FROM silences
        WHERE ends_at > $1 ORDER BY ends_at, id LIMIT 1000";
    let mut all = Vec::new();
    on_either!(db, Db, |pool| {
        for row in sqlx::query(select).bind(now).fetch_all(pool).await? {
            let written: String = row.try_get(1)?;
            let written: Vec<(String, String)> = serde_json::from_str(&written).unwrap_or_default();
            let matchers = written.into_iter().filter_map(|(label, value)| {
                let label = LABELS.into_iter().find(|known| *known == label)?;
                let value = Pattern::parse(&value).ok()?;
                Some(Matcher { label, value })
            });
            all.push(Silence {
                id: row.try_get(0)?,
                matchers: matchers.collect(),
                starts_at: row.try_get(2)?,
                ends_at: row.try_get(3)?,
                comment: row.try_get(4)?,
                by: row.try_get(5)?,
                suppressed: row.try_get::<i64, _>(6)?.unsigned_abs(),
            });
        }
    });
    Ok(all)
}

fn to_json(silence: &Silence) -> serde_json::Value {
    let matchers: Vec<String> = silence.matchers.iter().map(Matcher::display_name).collect();
    json!({"id": silence.id, "matchers": matchers, "endsAt": silence.ends_at, "comment": silence.comment})
}

fn may_act(who: &Principal, alert: &Active) -> Result<(), AlertError> {
    let may = match &alert.subject {
        Subject::Lock(lock) => who.may(Permission::Unlock, &lock.backend, &lock.resource.text()),
        other => {
            who.scope_on(Permission::Unlock, other.backend()).is_everything()
                && who.may_anywhere(Permission::Unlock)
        }
    };
    if may {
        Ok(())
    } else {
        Err(AlertError::Forbidden(
            "you are not an operator of the locks of this alert".to_owned(),
        ))
    }
}

/// An operator of a part may create silences within that part only.
fn may_silence(who: &Principal, matchers: &[Matcher]) -> Result<(), AlertError> {
    let places = who.grants.places(Permission::Unlock);
    if silence_stays_within(matchers, places) && who.may_anywhere(Permission::Unlock) {
        return Ok(());
    }
    Err(AlertError::Forbidden(
        "you may silence only locks that you operate: set `backend` without *, and `prefix` to one of yours, with * \
         only after a whole segment"
            .to_owned(),
    ))
}
