//! One lock read fresh: its queue with the time left of each waiter, the raw record, and other
//! keys on its lease.

use domain::escape;
use domain::limits::WAITERS_KEPT_MAX;
use domain::names::{Resource, Source};
use domain::observation::{Inspection, Lifetime, RawField, Waiter};
use domain::reported::Reported;
use etcd_client::KeyValue;

use super::EtcdBackend;
use super::error::{EtcdError, EtcdErrorKind};
use super::leases::{self, LeaseTimeLeft, Reading};
use super::lookup::{GONE_LEASE, Lookup, LookupResult, find};
use super::record::{LARGE_VALUE, Record, hex};
use super::release;
use super::scan::no_lease;
use crate::owner_value::cut;

/// Longest raw value shown, in characters, and most keys of a lease that are named.
const RAW_CHARS_MAX: usize = 4_096;
const SHARERS_MAX: usize = 100;

/// A lease as read, and its keys if etcd lists them for this account.
struct Lease {
    reading: Reading,
    keys: Result<Vec<Vec<u8>>, EtcdError>,
}

impl EtcdBackend {
    pub(super) async fn detail(&self, source: &Source, resource: &Resource) -> Result<Inspection, EtcdError> {
        let mut is_retry = false;
        loop {
            let Lookup::There(found) = find(&self.link, source, resource, usize::MAX).await? else {
                return Ok(Inspection::default());
            };
            let lease = self.lease_of(found.row.holder.lease).await?;
            // The lease ended between the two requests: the key is most likely deleted too.
            let is_lease_gone = lease
                .as_ref()
                .is_some_and(|lease| lease.reading.left == LeaseTimeLeft::Gone);
            if is_lease_gone && !is_retry {
                is_retry = true;
                continue;
            }
            return self.fetch_detail(*found, lease, is_lease_gone).await;
        }
    }

    async fn fetch_detail(
        &self,
        mut found: LookupResult,
        lease: Option<Lease>,
        is_lease_gone: bool,
    ) -> Result<Inspection, EtcdError> {
        if is_lease_gone {
            found.row.note = Some(GONE_LEASE.into());
        }
        let reading = lease.as_ref().map(|lease| lease.reading);
        let lifetime = reading.as_ref().map_or_else(no_lease, Reading::lifetime);
        let waiters = self.waiters(&found.row.waiters).await?;
        let others = lease
            .as_ref()
            .and_then(|lease| lease.keys.as_ref().ok())
            .map_or(0, |keys| keys.len().saturating_sub(1));
        Ok(Inspection {
            blast_radius: release::radius(&found.row, others),
            raw: raw(&found.holder, found.row.holder.value_read, &lifetime),
            lock: Some(found.row.lock(lifetime)),
            waiters,
            related_locks: lease.map_or_else(Vec::new, |lease| sharers(&found.holder, lease.keys)),
            ..Inspection::default()
        })
    }

    /// The lease and its keys. Newer versions of etcd do not list keys that this account may
    /// not read.
    async fn lease_of(&self, lease: i64) -> Result<Option<Lease>, EtcdError> {
        if lease == 0 {
            return Ok(None);
        }
        match leases::with_keys(&self.link, lease).await {
            Ok((reading, keys)) => Ok(Some(Lease {
                reading,
                keys: Ok(keys),
            })),
            Err(refused) if refused.kind == EtcdErrorKind::Denied => {
                self.leases.read(&self.link, &[lease]).await?;
                let reading = self.leases.get(lease);
                Ok(reading.map(|reading| Lease {
                    reading,
                    keys: Err(refused),
                }))
            }
            Err(fault) => Err(fault),
        }
    }

    async fn waiters(&self, queue: &[Record]) -> Result<Vec<Waiter>, EtcdError> {
        let queue = &queue[..queue.len().min(WAITERS_KEPT_MAX)];
        let started = self.link.clock.tick();
        let ids: Vec<i64> = queue.iter().map(|record| record.lease).collect();
        self.leases.read(&self.link, &ids).await?;
        let left = |lease| match self
            .leases
            .get(lease)
            .filter(|reading| reading.at >= started)?
            .left
        {
            LeaseTimeLeft::Ms(ms) => Some(ms),
            LeaseTimeLeft::Gone => Some(0),
            LeaseTimeLeft::NotStarted => None,
        };
        Ok((1..)
            .zip(queue)
            .map(|(position, record)| Waiter {
                position,
                owner_id: record.owner.clone(),
                waited_ms: Reported::unknown("etcd does not record when a key was written"),
                lease_remaining_ms: left(record.lease),
            })
            .collect())
    }
}

fn raw(kv: &KeyValue, value_read: bool, lifetime: &Lifetime) -> Vec<RawField> {
    let field = |name: &str, value: String| RawField {
        name: name.to_owned(),
        value,
    };
    let text = |bytes: &[u8]| cut(&escape::text(bytes), RAW_CHARS_MAX).into_owned();
    let mut fields = vec![
        field("key", text(kv.key())),
        field(
            "value",
            if value_read {
                text(kv.value())
            } else {
                format!("unknown: {LARGE_VALUE}")
            },
        ),
        field(
            "value bytes",
            if value_read {
                kv.value().len().to_string()
            } else {
                "unknown".to_owned()
            },
        ),
        field("create revision", kv.create_revision().to_string()),
        field("mod revision", kv.mod_revision().to_string()),
        field("version", kv.version().to_string()),
        field(
            "lease",
            if kv.lease() == 0 {
                "none".to_owned()
            } else {
                hex(kv.lease())
            },
        ),
    ];
    if kv.lease() != 0 {
        let (granted, left) = match lifetime {
            Lifetime::Leased { remaining_ms, ttl_ms } => (
                ttl_ms
                    .known()
                    .map_or_else(|| "unknown".to_owned(), |ms| format!("{} s", ms / 1000)),
                match remaining_ms {
                    1 => "less than 1 s".to_owned(),
                    ms => format!("{} s", ms / 1000),
                },
            ),
            Lifetime::Heartbeat { why, .. }
            | Lifetime::NoTtl { why }
            | Lifetime::Session { why }
            | Lifetime::SessionTtl { why, .. }
            | Lifetime::Unknown { why } => ("unknown".to_owned(), format!("unknown: {why}")),
        };
        fields.push(field("granted TTL", granted));
        fields.push(field("remaining TTL", left));
    }
    fields
}

/// One sentence per key that ends with the lease of `kv`.
fn sharers(kv: &KeyValue, keys: Result<Vec<Vec<u8>>, EtcdError>) -> Vec<String> {
    let keys = match keys {
        Ok(keys) => keys,
        Err(refused) => {
            return vec![format!(
                "The other keys of this lease could not be read: {}.",
                refused.error
            )];
        }
    };
    let mut others: Vec<&Vec<u8>> = keys.iter().filter(|key| key.as_slice() != kv.key()).collect();
    others.sort();
    let mut sentences: Vec<String> = others
        .iter()
        .take(SHARERS_MAX)
        .map(|key| {
            let key = escape::text(key);
            format!(
                "The key {} belongs to the same lease and is deleted when it ends.",
                cut(&key, RAW_CHARS_MAX)
            )
        })
        .collect();
    if others.len() > SHARERS_MAX {
        sentences.push(format!(
            "{} more keys belong to the same lease.",
            others.len() - SHARERS_MAX
        ));
    }
    sentences
}
