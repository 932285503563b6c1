//! Lists all prefixes at one revision.

use domain::limits::RESOURCE_BYTES_MAX;
use domain::observation::Coverage;
use domain::reported::Why;
use domain::tick::Tick;

use super::connection::Link;
use super::error::{EtcdError, EtcdErrorKind};
use super::range::{Cursor, Page};
use super::record::Record;
use super::row::{EtcdRow, Rows};

/// Result of a list.
pub(super) struct Listing {
    pub(super) rows: Vec<EtcdRow>,
    /// Revision of the list; 0 if nothing could be read.
    pub(super) revision: i64,
    /// Keys read, and keys that exist as far as known.
    seen: u64,
    of: u64,
    cut: Option<Why>,
    pub(super) fault: Option<EtcdError>,
    /// Prefixes of which every key that can be a lock was read.
    pub(super) read_prefixes: Vec<Vec<u8>>,
}

impl Listing {
    pub(super) fn coverage(&self) -> Coverage {
        match &self.cut {
            None => Coverage::Complete,
            Some(why) => {
                let of = (self.of > self.seen).then_some(self.of);
                Coverage::Partial {
                    seen: self.seen,
                    of,
                    why: why.clone(),
                }
            }
        }
    }

    /// Set if the listing has no usable part.
    pub(super) fn failed(&mut self) -> Option<EtcdError> {
        if self.revision == 0 {
            self.fault.take()
        } else {
            None
        }
    }
}

/// Lists until `deadline`. If the revision is compacted meanwhile: restarts once, then partial.
pub(super) async fn list(link: &Link, deadline: Tick) -> Listing {
    let first = list_once(link, deadline).await;
    if first
        .fault
        .as_ref()
        .is_some_and(|fault| fault.kind == EtcdErrorKind::Compacted)
    {
        return list_once(link, deadline).await;
    }
    first
}

async fn list_once(link: &Link, deadline: Tick) -> Listing {
    let mut listing = Listing {
        rows: Vec::new(),
        revision: 0,
        seen: 0,
        of: 0,
        cut: None,
        fault: None,
        read_prefixes: Vec::new(),
    };
    for prefix in &link.settings.prefixes {
        let fault = match list_prefix(link, prefix, deadline, &mut listing).await {
            Ok(is_read) => {
                listing.read_prefixes.extend(is_read.then(|| prefix.clone()));
                continue;
            }
            Err(fault) => fault,
        };
        let fault = fault.on_prefix(prefix);
        listing.cut = Some(match fault.kind {
            EtcdErrorKind::Compacted => {
                "etcd compacted its history faster than the keys could be read, twice".into()
            }
            _ => fault.error.to_string().into(),
        });
        // A permission error concerns one prefix; any other error would repeat at the next.
        let other_prefixes = fault.kind == EtcdErrorKind::Denied;
        listing.fault = Some(fault);
        if !other_prefixes {
            break;
        }
    }
    listing
}

/// Returns whether it was read to its end.
async fn list_prefix(
    link: &Link,
    prefix: &[u8],
    deadline: Tick,
    listing: &mut Listing,
) -> Result<bool, EtcdError> {
    let mut cursor = Cursor::new(prefix, listing.revision);
    let mut rows = Rows::below(prefix);
    let seen_before = listing.seen;
    let mut first = true;
    while !cursor.done {
        if link.clock.tick() >= deadline {
            listing.cut = Some("the scan timed out; raise `scan_timeout` or narrow `prefixes`".into());
            break;
        }
        let page = cursor.page(link).await;
        listing.revision = listing.revision.max(cursor.revision);
        let page =
            page.inspect_err(|_| listing.seen = listing.seen.saturating_sub(rows.open_queues() as u64))?;
        if first {
            listing.of = seen_before + page.left;
            first = false;
        }
        take(page, &mut rows, listing);
    }
    if cursor.done {
        listing.rows.extend(rows.close(None));
    }
    // Incomplete queues are not shown, so their keys do not count as read.
    listing.seen = listing.seen.saturating_sub(rows.open_queues() as u64);
    Ok(cursor.done)
}

fn take(page: Page, rows: &mut Rows<'_>, listing: &mut Listing) {
    listing.rows.reserve(page.kvs.len());
    for kv in &page.kvs {
        if kv.key().len() > RESOURCE_BYTES_MAX {
            listing.cut = Some(format!("a key is longer than {RESOURCE_BYTES_MAX} bytes").into());
            continue;
        }
        listing.seen += 1;
        listing
            .rows
            .extend(rows.add(Record::parse(kv, page.values_read), page.sent_at));
    }
    if let Some(last) = page.kvs.last() {
        listing.rows.extend(rows.close(Some(last.key())));
    }
}
