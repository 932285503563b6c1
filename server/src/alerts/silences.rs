//! Silences, acknowledgement, and the lists that pages show; cut to what somebody may see and act on.

use domain::access::{Right, Visible};
use domain::alerts::{
    Active, LABELS, Labels, Matcher, Pattern, Rule, Silence, SilenceDraft, Subject, labels,
};
use domain::audit::Action;
use domain::history::series;
use domain::history::template::literal;
use domain::names::BackendName;
use serde_json::json;
use sqlx::Row as _;

use super::book::{Book, turn_page};
use super::store::{self, Kept, Over};
use super::{AlertError, Alerts};
use crate::audit::Entry;
use crate::db::{Db, on_either};
use crate::identity::{Who, new_id};

impl Alerts {
    /// Those that are not over, the first to end first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn silences(&self) -> Result<Vec<Silence>, sqlx::Error> {
        Ok(self.glance().await?.silences(self.now()))
    }

    /// What is pending or fires, as far as it may be seen; with its rule and labels.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn open(&self, visible: &Visible) -> Result<Vec<(Kept, Rule, Labels)>, sqlx::Error> {
        let book = self.glance().await?;
        let rules = book.rules();
        let mut shown: Vec<(Kept, Rule, Labels)> = book
            .open
            .iter()
            .filter_map(|kept| {
                let rule = rules.iter().find(|rule| rule.id == kept.alert.rule)?.clone();
                if !is_visible(visible, &kept.alert.subject, Some(&rule)) {
                    return None;
                }
                let labels = labels(&rule, &kept.alert);
                Some((kept.clone(), rule, labels))
            })
            .collect();
        shown.sort_by_key(|(kept, rule, _)| {
            (
                !kept.alert.is_firing(),
                rule.severity,
                std::cmp::Reverse(kept.alert.since()),
            )
        });
        Ok(shown)
    }

    /// What fired and is over, newest first.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn over(&self, visible: &Visible, most: i64) -> Result<Vec<Over>, sqlx::Error> {
        let over = store::over(&self.db, most).await?.into_iter();
        let rules = self.glance().await?.rules();
        let seen = over.filter(|one| {
            let rule = rules.iter().find(|rule| rule.id.as_str() == one.rule);
            is_visible(visible, &one.subject, rule)
        });
        Ok(seen.collect())
    }

    /// Makes a silence that ends `lasts` from now. The author is who asks.
    ///
    /// # Errors
    /// `Invalid`; `Forbidden` where it would reach further than the caller may act; the store does not answer.
    pub async fn silence(&self, who: &Who, draft: &SilenceDraft) -> Result<Silence, AlertError> {
        let (matchers, lasts, comment) = draft.parse().map_err(AlertError::Invalid)?;
        may_silence(who, &matchers)?;
        let now = self.now();
        let silence = Silence {
            id: new_id("s_").map_err(|_| sqlx::Error::WorkerCrashed)?,
            matchers,
            starts_at: now,
            ends_at: now + lasts,
            comment,
            by: who.name().to_owned(),
            suppressed: 0,
        };
        let entry = Entry {
            after: Some(told(&silence)),
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

    /// Ends one now.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden`, or the store does not answer.
    pub async fn end_silence(&self, who: &Who, id: &str) -> Result<(), AlertError> {
        let found = self
            .silences()
            .await?
            .into_iter()
            .find(|silence| silence.id == id);
        let silence = found.ok_or(AlertError::NotFound("silence"))?;
        may_silence(who, &silence.matchers)?;
        let entry = Entry {
            before: Some(told(&silence)),
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

    /// How many of what fires now these would match.
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
            .filter(|(kept, _, labels)| kept.alert.is_firing() && silence.matches(labels));
        Ok(matched.count())
    }

    /// Somebody has it in hand.
    ///
    /// # Errors
    /// `NotFound` (also for what the caller may not see), `Forbidden`, or the store does not answer.
    pub async fn acknowledge(&self, who: &Who, id: i64, note: &str) -> Result<(), AlertError> {
        let visible = Visible::to(&who.grants);
        let open = self.open(&visible).await?;
        let found = open.into_iter().find(|(kept, ..)| kept.alert.id == id);
        let (kept, rule, _) = found.ok_or(AlertError::NotFound("alert that is open"))?;
        may_act(who, &kept.alert)?;
        let note: String = note
            .trim()
            .chars()
            .filter(|c| !c.is_control())
            .take(500)
            .collect();
        let entry = Entry {
            after: Some(json!({"alert": id, "rule": rule.name, "subject": kept.alert.subject.shown()})),
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

impl Book {
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

fn told(silence: &Silence) -> serde_json::Value {
    let matchers: Vec<String> = silence.matchers.iter().map(Matcher::shown).collect();
    json!({"id": silence.id, "matchers": matchers, "endsAt": silence.ends_at, "comment": silence.comment})
}

fn is_visible(visible: &Visible, subject: &Subject, rule: Option<&Rule>) -> bool {
    let scope = visible.on(subject.backend());
    match subject {
        Subject::Lock(lock) => scope.covers_bytes(lock.resource.as_bytes()),
        Subject::Prefix { backend, prefix } => {
            // Of a template that others' names have too, only what a rule within one's own names counted.
            let of_rule = rule.and_then(|rule| literal(rule.scope.prefix.as_str()));
            series::is_visible(visible, backend, prefix)
                || of_rule.is_some_and(|own| !own.is_empty() && scope.covers(own))
        }
        Subject::Backend(_) => !scope.is_nothing(),
    }
}

fn may_act(who: &Who, alert: &Active) -> Result<(), AlertError> {
    let may = match &alert.subject {
        Subject::Lock(lock) => who.may(Right::Unlock, &lock.backend, &lock.resource.text()),
        other => {
            who.scope_on(Right::Unlock, other.backend()).is_everything() && who.may_anywhere(Right::Unlock)
        }
    };
    if may {
        Ok(())
    } else {
        Err(AlertError::Forbidden(
            "you are no operator of what this alert is about".to_owned(),
        ))
    }
}

/// Whoever is operator of a part may silence within that part only.
fn may_silence(who: &Who, matchers: &[Matcher]) -> Result<(), AlertError> {
    let plain = |label: &[&str]| {
        let found = matchers.iter().find(|matcher| label.contains(&matcher.label));
        let value = found.map(|matcher| matcher.value.as_str());
        value.map(|value| value.split('*').next().unwrap_or_default())
    };
    let backend = plain(&["backend"]).and_then(|name| BackendName::parse(name).ok());
    let name = plain(&["prefix", "resource"]).unwrap_or_default();
    let reaches = who.grants.places(Right::Unlock).any(|(on, scope)| {
        let is_here = on.is_none() || on == backend;
        is_here && (scope.is_everything() || (!name.is_empty() && scope.covers(name)))
    });
    if reaches && who.may_anywhere(Right::Unlock) {
        return Ok(());
    }
    Err(AlertError::Forbidden(
        "you may silence only within what you are operator of: name a backend and a prefix of yours"
            .to_owned(),
    ))
}
