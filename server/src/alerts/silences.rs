//! Silences, limited to the principal's scope.

use domain::access::{Permission, Visible};
use domain::alerts::{
    Active, LABELS, Matcher, Pattern, Silence, SilenceDraft, Subject, silence_stays_within,
};
use domain::audit::Action;
use serde_json::json;
use sqlx::Row as _;

use super::alert_cache::{AlertState, raise_revision};
use super::unreadable_rows::UnreadableRows;
use super::{AlertError, Alerts, OpenAlert};
use crate::audit::Entry;
use crate::identity::Principal;
use runtime::db::{Db, Tx, on_either};
use runtime::random::prefixed_id;

/// Active silences, all of which are read.
const ACTIVE_MAX: i64 = 1_000;
/// Limit of one author, who otherwise could use up the limit for all.
const ACTIVE_PER_AUTHOR_MAX: i64 = 100;

impl Alerts {
    /// Silences that have not ended, by end time.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn silences(&self) -> Result<Vec<Silence>, sqlx::Error> {
        Ok(self.recent_state().await?.silences(self.now()))
    }

    /// Creates a silence that ends `lasts` from now; its author is the caller.
    ///
    /// # Errors
    /// `Invalid`; `Forbidden` where it would reach beyond the caller's scope; `TooMany`; the store does not answer.
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
        let stored_matchers: Vec<(&str, &str)> = silence
            .matchers
            .iter()
            .map(|matcher| (matcher.label, matcher.value.as_str()))
            .collect();
        let insert = "INSERT INTO silences (id, matchers, starts_at, ends_at, comment, by_id, by_name)
            VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let mut tx = self.db.begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        raise_revision(&mut tx).await?;
        check_count(&mut tx, who.id(), now).await?;
        on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(insert)
                .bind(&silence.id)
                .bind(json!(stored_matchers).to_string())
                .bind(silence.starts_at)
                .bind(silence.ends_at);
            let query = query.bind(&silence.comment).bind(who.id()).bind(who.name());
            query.execute(&mut **tx).await?.rows_affected()
        });
        tx.commit().await?;
        self.cache.mark_written();
        self.audit.export(&appended).await;
        Ok(silence)
    }

    /// Ends a silence now.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden`, or the store does not answer.
    pub async fn end_silence(&self, who: &Principal, id: &str) -> Result<(), AlertError> {
        let silence = self.silence_of(who, id).await?;
        let entry = Entry {
            before: Some(to_json(&silence)),
            ..Entry::new(Action::SilenceEnd, "ok", who.actor(None), who.origin.clone())
        };
        self.set_silence_end(entry, id, self.now()).await
    }

    /// Visible open alerts, each with whether the silence would match it.
    ///
    /// # Errors
    /// `Invalid`, or the store does not answer.
    pub async fn would_silence(
        &self,
        visible: &Visible,
        draft: &SilenceDraft,
    ) -> Result<Vec<(OpenAlert, bool)>, AlertError> {
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
        let marked = open.into_iter().map(|open| {
            let is_matched = silence.matches(&open.labels);
            (open, is_matched)
        });
        Ok(marked.collect())
    }

    /// Moves the end of a silence to `lasts` from now.
    ///
    /// # Errors
    /// `Invalid` for the duration, `NotFound`, `Forbidden`, or the store does not answer.
    pub async fn extend_silence(&self, who: &Principal, id: &str, lasts: &str) -> Result<(), AlertError> {
        let silence = self.silence_of(who, id).await?;
        let lasts = SilenceDraft::parse_length(lasts).map_err(|fault| AlertError::Invalid(vec![fault]))?;
        let extended = Silence {
            ends_at: self.now() + lasts,
            ..silence.clone()
        };
        let entry = Entry {
            before: Some(to_json(&silence)),
            after: Some(to_json(&extended)),
            ..Entry::new(
                Action::SilenceCreate,
                "extended",
                who.actor(None),
                who.origin.clone(),
            )
        };
        self.set_silence_end(entry, id, extended.ends_at).await
    }

    /// # Errors
    /// `NotFound`, `Forbidden` where `who` may not change it, or the store does not answer.
    async fn silence_of(&self, who: &Principal, id: &str) -> Result<Silence, AlertError> {
        let mut all = self.silences().await?.into_iter();
        let silence = all.find(|silence| silence.id == id);
        let silence = silence.ok_or(AlertError::NotFound("silence"))?;
        may_silence(who, &silence.matchers)?;
        Ok(silence)
    }

    async fn set_silence_end(&self, entry: Entry, id: &str, ends_at: i64) -> Result<(), AlertError> {
        let mut tx = self.db.begin().await?;
        let appended = self.audit.append_in(&mut tx, entry).await?;
        raise_revision(&mut tx).await?;
        // Another operator may have ended it since it was read.
        let update = "UPDATE silences SET ends_at = $1 WHERE id = $2 AND ends_at > $3";
        let rows_written = on_either!(&mut tx, Tx, |tx| {
            let query = sqlx::query(update).bind(ends_at).bind(id).bind(self.now());
            query.execute(&mut **tx).await?.rows_affected()
        });
        if rows_written == 0 {
            return Err(AlertError::NotFound("silence"));
        }
        tx.commit().await?;
        self.cache.mark_written();
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

/// Allows one more silence. Called after [`raise_revision`], whose lock orders concurrent calls.
///
/// # Errors
/// `TooMany`, or the store does not answer.
async fn check_count(tx: &mut Tx, author: &str, now: i64) -> Result<(), AlertError> {
    let select = "SELECT count(*), count(CASE WHEN by_id = $1 THEN 1 END) FROM silences WHERE ends_at > $2";
    let (all, own): (i64, i64) = on_either!(tx, Tx, |tx| {
        let query = sqlx::query(select).bind(author).bind(now);
        let row = query.fetch_one(&mut **tx).await?;
        (row.try_get(0)?, row.try_get(1)?)
    });
    if own >= ACTIVE_PER_AUTHOR_MAX {
        let (max, what) = (ACTIVE_PER_AUTHOR_MAX, "active silences of one author");
        return Err(AlertError::TooMany { max, what });
    }
    if all >= ACTIVE_MAX {
        let (max, what) = (ACTIVE_MAX, "active silences");
        return Err(AlertError::TooMany { max, what });
    }
    Ok(())
}

pub(super) async fn read(
    db: &Db,
    now: i64,
    unreadable: &UnreadableRows,
) -> Result<Vec<Silence>, sqlx::Error> {
    let select = "SELECT id, matchers, starts_at, ends_at, comment, by_name, suppressed FROM silences
        WHERE ends_at > $1 ORDER BY ends_at, id LIMIT $2";
    let mut all = Vec::new();
    on_either!(db, Db, |pool| {
        let query = sqlx::query(select).bind(now).bind(ACTIVE_MAX);
        for row in query.fetch_all(pool).await? {
            let (id, written): (String, String) = (row.try_get(0)?, row.try_get(1)?);
            let matchers = read_matchers(&written);
            if matchers.is_none() {
                unreadable.report("a silence", &id);
            }
            all.push(Silence {
                id,
                // Without matchers it matches nothing.
                matchers: matchers.unwrap_or_default(),
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

/// `None`: a newer version wrote one of them. Without it the others would match more.
fn read_matchers(written: &str) -> Option<Vec<Matcher>> {
    let written: Vec<(String, String)> = serde_json::from_str(written).ok()?;
    let matchers = written.into_iter().map(|(label, value)| {
        let label = LABELS.into_iter().find(|known| *known == label)?;
        let value = Pattern::parse(&value).ok()?;
        Some(Matcher { label, value })
    });
    matchers.collect()
}

fn to_json(silence: &Silence) -> serde_json::Value {
    let matchers: Vec<String> = silence.matchers.iter().map(Matcher::display_name).collect();
    json!({"id": silence.id, "matchers": matchers, "endsAt": silence.ends_at, "comment": silence.comment})
}

pub(super) fn may_act(who: &Principal, alert: &Active) -> Result<(), AlertError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_with_an_unreadable_matcher_matches_nothing() {
        // A label of a newer version, and a matcher of another form.
        let read = read_matchers(r#"[["rule", "coverage"], ["backend", "orders"]]"#).unwrap();
        let labels: Vec<&str> = read.iter().map(|matcher| matcher.label).collect();
        assert_eq!(labels, ["rule", "backend"]);
        for written in [
            r#"[["rule", "coverage"], ["datacenter", "north"]]"#,
            r#"[["rule", "coverage"], {"label": "backend"}]"#,
            "",
        ] {
            assert_eq!(read_matchers(written), None, "{written}");
        }
    }
}
