//! Writes a batch with one statement, whose parameters are columns.

use domain::lease::{EndCause, Lease, Revocation, StoreTime};
use sqlx::postgres::PgConnection;

use super::load::LoadedState;
use super::sql;
use crate::batch::Changes;
use crate::store::StoreError;
use crate::store::rows::{metadata_text, writes};

#[derive(Default)]
struct Counters {
    resource: Vec<String>,
    token: Vec<i64>,
    lease_id: Vec<Option<String>>,
    locked_until: Vec<Option<i64>>,
}

/// Columns of a lease that can change.
#[derive(Default)]
struct Changed {
    lease_id: Vec<String>,
    ttl_seconds: Vec<i64>,
    expires_at: Vec<i64>,
    renewed_at: Vec<i64>,
    renewals: Vec<i64>,
    ended_at: Vec<Option<i64>>,
    ended_how: Vec<Option<&'static str>>,
    revoked_by: Vec<Option<String>>,
    revoke_reason: Vec<Option<String>>,
    audit_id: Vec<Option<String>>,
}

#[derive(Default)]
struct NewLeases {
    resource: Vec<String>,
    owner_id: Vec<String>,
    issuer: Vec<String>,
    fencing_token: Vec<i64>,
    metadata: Vec<String>,
    acquired_at: Vec<i64>,
    rest: Changed,
}

/// In the order of their names, so that batches do not wait for each other in a circle.
#[derive(Default)]
struct Keys {
    name: Vec<String>,
    issuer: Vec<String>,
    fingerprint: Vec<String>,
    lease_id: Vec<Option<String>>,
    is_claimed: Vec<bool>,
    created_at: Vec<i64>,
}

impl Keys {
    fn from_changes(changes: &Changes) -> Self {
        let mut rows: Vec<_> = changes.keys.iter().collect();
        rows.sort_unstable_by(|(one, _), (other, _)| {
            (&one.issuer, &one.key).cmp(&(&other.issuer, &other.key))
        });
        let mut keys = Self::default();
        for (name, row) in rows {
            keys.name.push(name.key.to_string());
            keys.issuer.push(name.issuer.to_string());
            keys.fingerprint.push(row.fingerprint.to_string());
            keys.lease_id.push(row.lease.map(|lease| lease.to_string()));
            keys.is_claimed.push(row.is_claimed);
            keys.created_at.push(row.created_at.ms());
        }
        keys
    }
}

impl Changed {
    fn push(&mut self, lease: &Lease) {
        let revocation = match lease.ending.as_ref().map(|ending| &ending.how) {
            Some(EndCause::Revoked(revocation)) => Some(revocation),
            _ => None,
        };
        let text = |pick: fn(&Revocation) -> &str| revocation.map(|revocation| pick(revocation).to_owned());
        self.lease_id.push(lease.id.to_string());
        self.ttl_seconds.push(lease.ttl.seconds());
        self.expires_at.push(lease.expires_at.ms());
        self.renewed_at.push(lease.renewed_at.ms());
        self.renewals.push(lease.renewals);
        self.ended_at
            .push(lease.ending.as_ref().map(|ending| ending.at.ms()));
        self.ended_how
            .push(lease.ending.as_ref().map(|ending| ending.how.as_str()));
        self.revoked_by.push(text(|revocation| &revocation.by));
        self.revoke_reason.push(text(|revocation| &revocation.reason));
        self.audit_id.push(text(|revocation| &revocation.audit_id));
    }
}

fn columns(changes: &Changes) -> (Counters, Changed, NewLeases) {
    let (mut counters, mut changed, mut new_leases) = <(Counters, Changed, NewLeases)>::default();
    for (resource, (_, state)) in &changes.resources {
        counters.resource.push(resource.text());
        counters.token.push(state.last_token.number().cast_signed());
        let lease = state.lease.as_ref().map(|lease| lease.id.to_string());
        counters.lease_id.push(lease);
        counters.locked_until.push(state.locked_until.map(StoreTime::ms));
    }
    for change in changes.leases.values() {
        let lease = &change.lease;
        if !change.is_new {
            changed.push(lease);
            continue;
        }
        new_leases.resource.push(change.resource.text());
        new_leases.owner_id.push(lease.owner.to_string());
        new_leases.issuer.push(lease.issuer.to_string());
        new_leases.fencing_token.push(lease.token.number().cast_signed());
        new_leases.metadata.push(metadata_text(&lease.metadata));
        new_leases.acquired_at.push(lease.acquired_at.ms());
        new_leases.rest.push(lease);
    }
    (counters, changed, new_leases)
}

/// A column of nulls only is sent as one null: its subscripts are null as well, and there is no
/// array to unpack.
fn sparse<T>(column: Vec<Option<T>>) -> Option<Vec<Option<T>>> {
    column.iter().any(Option::is_some).then_some(column)
}

/// Changes of a batch and the state they are based on.
pub(super) struct SaveRequest<'a> {
    pub(super) seen: LoadedState,
    pub(super) changes: &'a Changes,
    pub(super) replica: &'a str,
    pub(super) decided_at: StoreTime,
    /// Largest accepted difference between `decided_at` and now, in milliseconds; `None` while
    /// the caller holds the locks.
    pub(super) max_age_ms: Option<i64>,
}

/// Writes a batch; returns the store time of the write.
///
/// # Errors
/// `Conflict` when a row that the batch had read has changed or is being changed: nothing is
/// written.
pub(super) async fn save(
    connection: &mut PgConnection,
    request: SaveRequest<'_>,
) -> Result<StoreTime, StoreError> {
    let SaveRequest { seen, changes, .. } = request;
    let writes = writes(changes, request.replica, request.decided_at)?;
    let (counters, changed, new_leases) = columns(changes);
    let keys = Keys::from_changes(changes);
    let mut query = sqlx::query_as(sql::SAVE)
        .bind(request.decided_at.ms())
        .bind(request.max_age_ms)
        .bind(seen.floor)
        .bind(seen.resource)
        .bind(seen.token)
        .bind(seen.lease_id)
        .bind(sparse(seen.locked_until))
        .bind(seen.renewals)
        .bind(sparse(seen.expires_at))
        .bind(seen.waiters)
        .bind(sparse(seen.last_waiter))
        .bind(counters.resource)
        .bind(counters.token)
        .bind(counters.lease_id)
        .bind(sparse(counters.locked_until));
    for columns in [changed, new_leases.rest] {
        query = query
            .bind(columns.lease_id)
            .bind(columns.ttl_seconds)
            .bind(columns.expires_at)
            .bind(columns.renewed_at)
            .bind(columns.renewals)
            .bind(sparse(columns.ended_at))
            .bind(sparse(columns.ended_how))
            .bind(sparse(columns.revoked_by))
            .bind(sparse(columns.revoke_reason))
            .bind(sparse(columns.audit_id));
    }
    let query = query
        .bind(new_leases.resource)
        .bind(new_leases.owner_id)
        .bind(new_leases.issuer)
        .bind(new_leases.fencing_token)
        .bind(new_leases.metadata)
        .bind(new_leases.acquired_at)
        .bind(keys.name)
        .bind(keys.issuer)
        .bind(keys.fingerprint)
        .bind(keys.lease_id)
        .bind(keys.is_claimed)
        .bind(keys.created_at)
        .bind(seen.are_keys_new)
        .bind(writes.unbound)
        .bind(writes.left)
        .bind(writes.joined)
        .bind(writes.rejections);
    let saved = query.fetch_one(connection).await;
    let (store_now, conflict): (Option<i64>, Option<String>) = match saved {
        // A key that was taken for a new one.
        Err(sqlx::Error::Database(error)) if error.constraint() == Some("idempotency_keys_pkey") => {
            return Err(StoreError::Conflict);
        }
        saved => saved?,
    };
    match (store_now, conflict) {
        (Some(store_now), None) => Ok(StoreTime::from_ms(store_now)),
        (_, conflict) => {
            tracing::debug!(
                batch.conflict = conflict,
                "a batch conflicted with another replica"
            );
            Err(StoreError::Conflict)
        }
    }
}
