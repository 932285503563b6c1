//! Reads locks by name: for hints, and for leases that ended while a pass was under way.

use std::collections::HashSet;

use domain::names::{Resource, Source};
use etcd_client::KeyValue;
use futures::StreamExt;

use super::EtcdBackend;
use super::fault::Fault;
use super::leases::{CHUNK_LEASES, Left, PARALLEL_MAX};
use super::link::Link;
use super::pass::{hand_over, no_lease};
use super::range::{self, Cursor, One};
use super::record::{Place, Record, key_source, mutex_source, place};
use super::row::{Row, Rows};
use crate::backends::{BackendError, Batch, Sink};

/// Pages read for one queue because of a hint; a wider one waits for the next pass.
const HINT_PAGES_MAX: usize = 5;

/// One lock looked for by name.
pub(super) enum Look {
    There(Box<Found>),
    Absent,
    /// So many keys below its name that a hint is not worth reading them.
    TooWide,
}

pub(super) struct Found {
    pub(super) row: Row,
    /// The holder's key, with its value unless that is too large.
    pub(super) holder: KeyValue,
}

/// Looks for one lock. Names outside the configured prefixes are absent: nobody asked us to look there.
pub(super) async fn find(
    link: &Link,
    source: &Source,
    resource: &Resource,
    pages_max: usize,
) -> Result<Look, Fault> {
    if *source == key_source() {
        find_key(link, resource).await
    } else if *source == mutex_source() {
        find_queue(link, resource, pages_max).await
    } else {
        Ok(Look::Absent)
    }
}

async fn find_key(link: &Link, resource: &Resource) -> Result<Look, Fault> {
    let Some(prefix) = prefix_of(link, resource.as_bytes()) else {
        return Ok(Look::Absent);
    };
    let read = range::one(link, resource.as_bytes())
        .await
        .map_err(|fault| fault.on_prefix(prefix))?;
    let Some(One {
        sent_at,
        kv: holder,
        value_read,
    }) = read
    else {
        return Ok(Look::Absent);
    };
    let row = Rows::below(prefix).add(Record::of(&holder, value_read), sent_at);
    Ok(row.map_or(Look::Absent, |row| Look::There(Box::new(Found { row, holder }))))
}

async fn find_queue(link: &Link, resource: &Resource, pages_max: usize) -> Result<Look, Fault> {
    let name = resource.as_bytes();
    let below = [name, b"/"].concat();
    let Some(prefix) = prefix_of(link, &below) else {
        return Ok(Look::Absent);
    };
    let mut cursor = Cursor::over(&below, 0);
    let mut rows = Rows::below(prefix);
    let mut holder: Option<KeyValue> = None;
    for _ in 0..pages_max {
        let page = cursor.page(link).await.map_err(|fault| fault.on_prefix(prefix))?;
        for kv in page.kvs {
            if !matches!(place(kv.key(), kv.lease(), prefix), Place::Queue(found) if found == name) {
                continue;
            }
            rows.add(Record::of(&kv, page.values_read), page.sent_at);
            if holder
                .as_ref()
                .is_none_or(|first| kv.create_revision() < first.create_revision())
            {
                holder = Some(kv);
            }
        }
        if cursor.done {
            let found = rows.close(None).pop().zip(holder);
            return Ok(found.map_or(Look::Absent, |(row, holder)| {
                Look::There(Box::new(Found { row, holder }))
            }));
        }
    }
    Ok(Look::TooWide)
}

pub(super) fn prefix_of<'a>(link: &'a Link, key: &[u8]) -> Option<&'a [u8]> {
    link.settings
        .prefixes
        .iter()
        .map(Vec::as_slice)
        .find(|prefix| key.starts_with(prefix))
}

impl EtcdBackend {
    /// Reads these locks and hands them over; what is not there is handed over as gone.
    pub(super) async fn named(
        &self,
        names: &[(Source, Resource)],
        sink: &mut dyn Sink,
    ) -> Result<(), BackendError> {
        let again = self.named_once(names, false, sink).await?;
        if !again.is_empty() {
            self.named_once(&again, true, sink).await?;
        }
        Ok(())
    }

    /// Returns the names whose lease ended between two questions: to look at again, unless this is the `last` look.
    async fn named_once(
        &self,
        names: &[(Source, Resource)],
        last: bool,
        sink: &mut dyn Sink,
    ) -> Result<Vec<(Source, Resource)>, BackendError> {
        let started = self.link.clock.tick();
        let mut looks = futures::stream::iter(names.to_vec())
            .map(|(source, resource)| async move {
                let look = find(&self.link, &source, &resource, HINT_PAGES_MAX).await;
                (source, resource, look)
            })
            .buffer_unordered(PARALLEL_MAX);
        let mut rows = Vec::new();
        let mut gone = Vec::new();
        while let Some((source, resource, look)) = looks.next().await {
            match look.map_err(|fault| fault.error)? {
                Look::There(found) => rows.push(found.row),
                Look::Absent => gone.push((source, resource)),
                Look::TooWide => {}
            }
        }
        if !gone.is_empty() {
            sink.accept(Batch {
                sent_at: started,
                locks: Vec::new(),
                gone,
            });
        }
        self.tell_named(rows, last, sink)
            .await
            .map_err(|fault| fault.error)
    }

    async fn tell_named(
        &self,
        rows: Vec<Row>,
        last: bool,
        sink: &mut dyn Sink,
    ) -> Result<Vec<(Source, Resource)>, Fault> {
        let leases: HashSet<i64> = rows
            .iter()
            .map(|row| row.holder.lease)
            .filter(|lease| *lease != 0)
            .collect();
        let leases: Vec<i64> = leases.into_iter().collect();
        for chunk in leases.chunks(CHUNK_LEASES) {
            self.leases.read(&self.link, chunk).await?;
        }
        let mut again = Vec::new();
        let mut known = Vec::with_capacity(rows.len());
        for mut row in rows {
            if row.holder.lease == 0 {
                known.push((row.read_at, row.lock(no_lease())));
                continue;
            }
            let Some(reading) = self.leases.get(row.holder.lease) else {
                continue;
            };
            if reading.left == Left::Gone {
                if !last {
                    again.push((row.source, row.resource));
                    continue;
                }
                row.note = Some(GONE_LEASE.into());
            }
            known.push((reading.at, row.lock(reading.lifetime())));
        }
        hand_over(sink, known);
        Ok(again)
    }
}

/// Said of a key that outlived its lease.
pub(super) const GONE_LEASE: &str =
    "etcd no longer knows the lease that the key hangs on, and the key is still there";
