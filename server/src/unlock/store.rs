//! Rows of unlocks: one private row type for both stores, checked when read, and the few statements that change
//! them.

use chrono::{DateTime, Utc};
use domain::names::{BackendName, Resource, Source};
use domain::unlock::{
    Approval, BreakGlass, EndedHolding, ObservedHolding, ProtectionLevel, Unlock, UnlockState,
};

use runtime::db::{Db, Tx, from_row, on_either};

const SELECT: &str = "SELECT id, state, protection, protection_reason, by_id, by_name, by_root_user_id, backend, source, resource, reason, observed, created_at,
    expires_at, mismatches, approver_id, approver_name, approved_at, break_glass_reason, reviewer_id, reviewer_name,
    reviewed_at, acted_at, act_deadline, ended_at, ending, intent_entry, act_entry, outcome_entry, rereads, reread_at,
    still_held_since FROM unlocks WHERE ";

from_row! {
    struct UnlockRow {
        id: String,
        state: String,
        protection: String,
        protection_reason: Option<String>,
        by_id: String,
        by_name: String,
        by_root_user_id: Option<String>,
        backend: String,
        source: String,
        resource: String,
        reason: String,
        observed: String,
        created_at: i64,
        expires_at: i64,
        mismatches: i64,
        approver_id: Option<String>,
        approver_name: Option<String>,
        approved_at: Option<i64>,
        break_glass_reason: Option<String>,
        reviewer_id: Option<String>,
        reviewer_name: Option<String>,
        reviewed_at: Option<i64>,
        acted_at: Option<i64>,
        ended_at: Option<i64>,
        ending: String,
        intent_entry: i64,
        act_entry: Option<i64>,
        outcome_entry: Option<i64>,
        rereads: i64,
        reread_at: Option<i64>,
        still_held_since: Option<i64>,
    }
}

/// An unlock with fields that only maintenance needs.
pub(super) struct StoredUnlock {
    pub(super) unlock: Unlock,
    pub(super) reread_at: Option<i64>,
    pub(super) still_held_since: Option<i64>,
}

fn moment(ms: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(ms).unwrap_or_default()
}

fn user(id: Option<String>, name: Option<String>, at: Option<i64>) -> Option<Approval> {
    Some(Approval {
        by_id: id?,
        by_name: name?,
        at: moment(at?),
    })
}

impl UnlockRow {
    /// `None` if a newer version wrote values unknown to this one.
    fn read(self) -> Option<StoredUnlock> {
        let review = user(self.reviewer_id, self.reviewer_name, self.reviewed_at);
        let unlock = Unlock {
            state: UnlockState::parse(&self.state)?,
            protection: ProtectionLevel::parse(&self.protection)?,
            // An unknown reason still counts as protected through the level.
            protection_reason: self
                .protection_reason
                .and_then(|json| serde_json::from_str(&json).ok()),
            backend: BackendName::parse(&self.backend).ok()?,
            source: Source::parse(&self.source).ok()?,
            resource: serde_json::from_str::<Resource>(&self.resource).ok()?,
            observed: serde_json::from_str::<ObservedHolding>(&self.observed).ok()?,
            ending: serde_json::from_str::<EndedHolding>(&self.ending).ok()?,
            approval: user(self.approver_id, self.approver_name, self.approved_at),
            break_glass: self
                .break_glass_reason
                .map(|reason| BreakGlass { reason, review }),
            id: self.id,
            by_id: self.by_id,
            by_name: self.by_name,
            by_root_user_id: self.by_root_user_id,
            reason: self.reason,
            created_at: moment(self.created_at),
            expires_at: moment(self.expires_at),
            mismatches: u32::try_from(self.mismatches).unwrap_or(u32::MAX),
            acted_at: self.acted_at.map(moment),
            ended_at: self.ended_at.map(moment),
            intent_entry: self.intent_entry,
            act_entry: self.act_entry,
            outcome_entry: self.outcome_entry,
            rereads: u32::try_from(self.rereads).unwrap_or(u32::MAX),
        };
        Some(StoredUnlock {
            unlock,
            reread_at: self.reread_at,
            still_held_since: self.still_held_since,
        })
    }
}

fn read(rows: Vec<UnlockRow>) -> Vec<StoredUnlock> {
    let read = rows.into_iter().filter_map(|row| {
        let id = row.id.clone();
        let read = row.read();
        if read.is_none() {
            tracing::error!(unlock.id = id, "this version cannot read the stored unlock {id}");
        }
        read
    });
    read.collect()
}

/// # Errors
/// The store does not answer.
pub(super) async fn get(db: &Db, id: &str) -> Result<Option<Unlock>, sqlx::Error> {
    // Postgres rejects text with NUL.
    if id.contains('\0') {
        return Ok(None);
    }
    let found = select(db, "id = $1 LIMIT $2", &[Value::Text(id), Value::Int(1)]).await?;
    Ok(found.into_iter().next().map(|row| row.unlock))
}

/// A bound value.
#[derive(Clone, Copy)]
pub(super) enum Value<'a> {
    Text(&'a str),
    MaybeText(Option<&'a str>),
    Int(i64),
}

/// Rows that match.
///
/// # Errors
/// The store does not answer.
pub(super) async fn select(
    db: &Db,
    wanted: &'static str,
    values: &[Value<'_>],
) -> Result<Vec<StoredUnlock>, sqlx::Error> {
    let rows = on_either!(db, Db, |pool| {
        let mut query = sqlx::QueryBuilder::new(SELECT);
        query.push(wanted);
        let mut query = query.build_query_as::<UnlockRow>();
        for value in values {
            query = match *value {
                Value::Text(text) => query.bind(text),
                Value::MaybeText(text) => query.bind(text),
                Value::Int(number) => query.bind(number),
            };
        }
        query.fetch_all(pool).await?
    });
    Ok(read(rows))
}

/// Executes a change; returns the number of rows.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn change(
    tx: &mut Tx,
    statement: &'static str,
    values: &[Value<'_>],
) -> Result<u64, sqlx::Error> {
    Ok(on_either!(tx, Tx, |tx| {
        let mut query = sqlx::query(statement);
        for value in values {
            query = match *value {
                Value::Text(text) => query.bind(text),
                Value::MaybeText(text) => query.bind(text),
                Value::Int(number) => query.bind(number),
            };
        }
        query.execute(&mut **tx).await?.rows_affected()
    }))
}

/// # Errors
/// The store refuses or does not answer.
pub(super) async fn insert(tx: &mut Tx, unlock: &Unlock, role: Option<&str>) -> Result<(), sqlx::Error> {
    let statement =
        "INSERT INTO unlocks (id, state, protection, by_id, by_name, role, backend, source, resource, reason,
        observed, created_at, expires_at, intent_entry, protection_reason, by_root_user_id)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)";
    let json = |error| sqlx::Error::Encode(Box::new(error));
    let resource = serde_json::to_string(&unlock.resource).map_err(json)?;
    let observed = serde_json::to_string(&unlock.observed).map_err(json)?;
    let protection_reason = unlock.protection_reason.as_ref().map(serde_json::to_string);
    let protection_reason = protection_reason.transpose().map_err(json)?;
    let values = [
        Value::Text(&unlock.id),
        Value::Text(unlock.state.as_str()),
        Value::Text(unlock.protection.as_str()),
        Value::Text(&unlock.by_id),
        Value::Text(&unlock.by_name),
        Value::MaybeText(role),
        Value::Text(unlock.backend.as_str()),
        Value::Text(unlock.source.as_str()),
        Value::Text(&resource),
        Value::Text(&unlock.reason),
        Value::Text(&observed),
        Value::Int(unlock.created_at.timestamp_millis()),
        Value::Int(unlock.expires_at.timestamp_millis()),
        Value::Int(unlock.intent_entry),
        Value::MaybeText(protection_reason.as_deref()),
        Value::MaybeText(unlock.by_root_user_id.as_deref()),
    ];
    change(tx, statement, &values).await?;
    Ok(())
}

/// Ends an unlock that is still in state `from`. An unknown outcome is written once and may be followed by a known
/// one.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn end(
    tx: &mut Tx,
    id: &str,
    (from, to): (UnlockState, UnlockState),
    ending: &EndedHolding,
    row: i64,
    now: i64,
) -> Result<bool, sqlx::Error> {
    let statement = "UPDATE unlocks SET state = $1, ending = $2, outcome_entry = $3, ended_at = $4
        WHERE id = $5 AND state = $6 AND (ended_at IS NULL OR $1 <> 'outcome_unknown')";
    let ending = serde_json::to_string(ending).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let values = [
        Value::Text(to.as_str()),
        Value::Text(&ending),
        Value::Int(row),
        Value::Int(now),
        Value::Text(id),
        Value::Text(from.as_str()),
    ];
    Ok(change(tx, statement, &values).await? == 1)
}

/// Replaces the ending of an outcome that is still unknown; `row` is its new audit entry.
///
/// # Errors
/// The store refuses or does not answer.
pub(super) async fn explain_unknown(
    tx: &mut Tx,
    unlock: &Unlock,
    ending: &EndedHolding,
    row: i64,
) -> Result<bool, sqlx::Error> {
    let statement = "UPDATE unlocks SET ending = $1, outcome_entry = $2
        WHERE id = $3 AND state = 'outcome_unknown' AND coalesce(outcome_entry, 0) = $4";
    let ending = serde_json::to_string(ending).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let values = [
        Value::Text(&ending),
        Value::Int(row),
        Value::Text(&unlock.id),
        Value::Int(unlock.outcome_entry.unwrap_or(0)),
    ];
    Ok(change(tx, statement, &values).await? == 1)
}
