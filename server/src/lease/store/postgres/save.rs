//! Writes counters and leases of a batch: one statement, whose parameters are columns.

use domain::lease::{How, Lease, Revocation, StoreTime};
use sqlx::postgres::PgConnection;

use super::sql;
use crate::lease::batch::Changes;
use crate::lease::store::StoreError;
use crate::lease::store::rows::metadata_text;

#[derive(Default)]
struct Counters {
    resource: Vec<String>,
    before: Vec<i64>,
    token: Vec<i64>,
    lease_id: Vec<Option<String>>,
    locked_until: Vec<Option<i64>>,
}

/// What of a lease may change.
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
struct Born {
    resource: Vec<String>,
    owner_id: Vec<String>,
    issuer: Vec<String>,
    fencing_token: Vec<i64>,
    metadata: Vec<String>,
    acquired_at: Vec<i64>,
    rest: Changed,
}

impl Changed {
    fn push(&mut self, lease: &Lease) {
        let revocation = match lease.ending.as_ref().map(|ending| &ending.how) {
            Some(How::Revoked(revocation)) => Some(revocation),
            _ => None,
        };
        let text = |pick: fn(&Revocation) -> &str| revocation.map(|it| pick(it).to_owned());
        self.lease_id.push(lease.id.to_string());
        self.ttl_seconds.push(lease.ttl.seconds());
        self.expires_at.push(lease.expires_at.ms());
        self.renewed_at.push(lease.renewed_at.ms());
        self.renewals.push(lease.renewals);
        self.ended_at
            .push(lease.ending.as_ref().map(|ending| ending.at.ms()));
        self.ended_how
            .push(lease.ending.as_ref().map(|ending| ending.how.wire()));
        self.revoked_by.push(text(|it| &it.by));
        self.revoke_reason.push(text(|it| &it.reason));
        self.audit_id.push(text(|it| &it.audit_id));
    }
}

fn columns(changes: &Changes) -> (Counters, Changed, Born) {
    let (mut counters, mut changed, mut born) = <(Counters, Changed, Born)>::default();
    for (resource, (before, state)) in &changes.resources {
        counters.resource.push(resource.text());
        counters.before.push(before.cast_signed());
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
        born.resource.push(change.resource.text());
        born.owner_id.push(lease.owner.to_string());
        born.issuer.push(lease.issuer.to_string());
        born.fencing_token.push(lease.token.number().cast_signed());
        born.metadata.push(metadata_text(&lease.metadata));
        born.acquired_at.push(lease.acquired_at.ms());
        born.rest.push(lease);
    }
    (counters, changed, born)
}

/// # Errors
/// `Conflict` when other rows were written than decided on: another replica was first.
pub(super) async fn save(connection: &mut PgConnection, changes: &Changes) -> Result<(), StoreError> {
    if changes.resources.is_empty() && changes.leases.is_empty() {
        return Ok(());
    }
    let (counters, changed, born) = columns(changes);
    let wanted = [&counters.resource, &changed.lease_id, &born.resource].map(Vec::len);
    let mut query = sqlx::query_as(sql::SAVE)
        .bind(counters.resource)
        .bind(counters.before)
        .bind(counters.token)
        .bind(counters.lease_id)
        .bind(counters.locked_until);
    for it in [changed, born.rest] {
        query = query
            .bind(it.lease_id)
            .bind(it.ttl_seconds)
            .bind(it.expires_at)
            .bind(it.renewed_at)
            .bind(it.renewals)
            .bind(it.ended_at)
            .bind(it.ended_how)
            .bind(it.revoked_by)
            .bind(it.revoke_reason)
            .bind(it.audit_id);
    }
    let query = query
        .bind(born.resource)
        .bind(born.owner_id)
        .bind(born.issuer)
        .bind(born.fencing_token)
        .bind(born.metadata)
        .bind(born.acquired_at);
    let (counters, changed, born): (i64, i64, i64) = query.fetch_one(connection).await?;
    let written = [counters, changed, born].map(|rows| usize::try_from(rows).unwrap_or(usize::MAX));
    if written == wanted {
        return Ok(());
    }
    tracing::warn!(?wanted, ?written, "a batch met another replica");
    Err(StoreError::Conflict)
}
