//! Reads locks by name: after change notifications, and for leases that ended during a scan.

use std::collections::HashSet;

use domain::names::{Resource, Source};
use etcd_client::KeyValue;
use futures::StreamExt;

use super::EtcdBackend;
use super::connection::Link;
use super::error::EtcdError;
use super::leases::{CHUNK_LEASES, LeaseTimeLeft, PARALLEL_MAX};
use super::range::{self, Cursor, KeyRead};
use super::record::{KeyPlacement, Record, key_source, mutex_source, place};
use super::row::{EtcdRow, Rows};
use super::scan::{deliver, no_lease};
use crate::{BackendError, Batch, Sink};

/// Pages read for one queue after a notification; a larger queue waits for the next scan.
pub(super) const HINT_PAGES_MAX: usize = 5;

/// Result of a lookup by name.
pub(super) enum Lookup {
    There(Box<LookupResult>),
    Absent,
    /// Too many keys below the name to read them after a notification.
    TooWide,
}

pub(super) struct LookupResult {
    pub(super) row: EtcdRow,
    /// The holder's key, with its value unless that is too large.
    pub(super) holder: KeyValue,
}

/// Finds one lock. Names outside the configured prefixes are absent: they are not observed.
pub(super) async fn find(
    link: &Link,
    source: &Source,
    resource: &Resource,
    pages_max: usize,
) -> Result<Lookup, EtcdError> {
    if *source == key_source() {
        find_key(link, resource).await
    } else if *source == mutex_source() {
        find_queue(link, resource, pages_max).await
    } else {
        Ok(Lookup::Absent)
    }
}

async fn find_key(link: &Link, resource: &Resource) -> Result<Lookup, EtcdError> {
    let Some(prefix) = prefix_of(link, resource.as_bytes()) else {
        return Ok(Lookup::Absent);
    };
    let read = range::read_key(link, resource.as_bytes())
        .await
        .map_err(|fault| fault.on_prefix(prefix))?;
    let Some(KeyRead {
        sent_at,
        kv: holder,
        value_read,
    }) = read
    else {
        return Ok(Lookup::Absent);
    };
    let row = Rows::below(prefix).add(Record::parse(&holder, value_read), sent_at);
    Ok(row.map_or(Lookup::Absent, |row| {
        Lookup::There(Box::new(LookupResult { row, holder }))
    }))
}

async fn find_queue(link: &Link, resource: &Resource, pages_max: usize) -> Result<Lookup, EtcdError> {
    let name = resource.as_bytes();
    let below = [name, b"/"].concat();
    let Some(prefix) = prefix_of(link, &below) else {
        return Ok(Lookup::Absent);
    };
    let mut cursor = Cursor::new(&below, 0);
    let mut rows = Rows::below(prefix);
    let mut holder: Option<KeyValue> = None;
    for _ in 0..pages_max {
        let page = cursor.page(link).await.map_err(|fault| fault.on_prefix(prefix))?;
        for kv in page.kvs {
            if !matches!(place(kv.key(), kv.lease(), prefix), KeyPlacement::Queue(found) if found == name) {
                continue;
            }
            rows.add(Record::parse(&kv, page.values_read), page.sent_at);
            if holder
                .as_ref()
                .is_none_or(|first| kv.create_revision() < first.create_revision())
            {
                holder = Some(kv);
            }
        }
        if cursor.done {
            let found = rows.close(None).pop().zip(holder);
            return Ok(found.map_or(Lookup::Absent, |(row, holder)| {
                Lookup::There(Box::new(LookupResult { row, holder }))
            }));
        }
    }
    Ok(Lookup::TooWide)
}

pub(super) fn prefix_of<'a>(link: &'a Link, key: &[u8]) -> Option<&'a [u8]> {
    link.settings
        .prefixes
        .iter()
        .map(Vec::as_slice)
        .find(|prefix| key.starts_with(prefix))
}

impl EtcdBackend {
    /// Reads these locks and delivers them; missing ones are delivered as gone. Queues of more pages are left out.
    ///
    /// # Errors
    /// The first lock that could not be read. The others are delivered.
    pub(super) async fn refresh_named(
        &self,
        names: &[(Source, Resource)],
        pages_max: usize,
        sink: &mut dyn Sink,
    ) -> Result<(), BackendError> {
        self.refreshed.record(names, self.link.clock.tick());
        let (retries, refreshed) = self.refresh_named_once(names, (pages_max, false), sink).await;
        if retries.is_empty() {
            return refreshed;
        }
        let (_, refreshed_again) = self.refresh_named_once(&retries, (pages_max, true), sink).await;
        refreshed.and(refreshed_again)
    }

    /// Returns names whose lease ended between two requests: they are read again, unless this
    /// is the `last` attempt.
    async fn refresh_named_once(
        &self,
        names: &[(Source, Resource)],
        (pages_max, last): (usize, bool),
        sink: &mut dyn Sink,
    ) -> (Vec<(Source, Resource)>, Result<(), BackendError>) {
        let started = self.link.clock.tick();
        let mut lookups = futures::stream::iter(names.to_vec())
            .map(|(source, resource)| async move {
                let look = find(&self.link, &source, &resource, pages_max).await;
                (source, resource, look)
            })
            .buffer_unordered(PARALLEL_MAX);
        let mut rows = Vec::new();
        let mut gone = Vec::new();
        let mut refreshed = Ok(());
        while let Some((source, resource, look)) = lookups.next().await {
            match look {
                Ok(Lookup::There(found)) => rows.push(found.row),
                Ok(Lookup::Absent) => gone.push((source, resource)),
                Ok(Lookup::TooWide) => {}
                Err(fault) => refreshed = refreshed.and(Err(fault.error)),
            }
        }
        if !gone.is_empty() {
            sink.accept(Batch {
                sent_at: started,
                locks: Vec::new(),
                gone,
            });
        }
        match self.deliver_named(rows, last, sink).await {
            Ok(retries) => (retries, refreshed),
            Err(fault) => (Vec::new(), refreshed.and(Err(fault.error))),
        }
    }

    async fn deliver_named(
        &self,
        rows: Vec<EtcdRow>,
        last: bool,
        sink: &mut dyn Sink,
    ) -> Result<Vec<(Source, Resource)>, EtcdError> {
        let leases: HashSet<i64> = rows
            .iter()
            .map(|row| row.holder.lease)
            .filter(|lease| *lease != 0)
            .collect();
        let leases: Vec<i64> = leases.into_iter().collect();
        for chunk in leases.chunks(CHUNK_LEASES) {
            self.leases.read(&self.link, chunk).await?;
        }
        let mut retries = Vec::new();
        let mut known = Vec::with_capacity(rows.len());
        for mut row in rows {
            if row.holder.lease == 0 {
                known.push((row.read_at, row.lock(no_lease())));
                continue;
            }
            let Some(reading) = self.leases.get(row.holder.lease) else {
                continue;
            };
            if reading.left == LeaseTimeLeft::Gone {
                if !last {
                    retries.push((row.source, row.resource));
                    continue;
                }
                row.note = Some(GONE_LEASE.into());
            }
            known.push((reading.at, row.lock(reading.lifetime())));
        }
        deliver(sink, known);
        Ok(retries)
    }
}

/// Condition of a key that outlived its lease.
pub(super) const GONE_LEASE: &str = "etcd no longer knows the key's lease, but the key still exists";
