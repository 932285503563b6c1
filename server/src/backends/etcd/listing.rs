//! One list of all prefixes at one revision.

use domain::known::Why;
use domain::limits::RESOURCE_BYTES_MAX;
use domain::observation::{Coverage, Tick};

use super::fault::{Fault, Kind};
use super::link::Link;
use super::range::{Cursor, Page};
use super::record::Record;
use super::row::{Row, Rows};

/// What a list found.
pub(super) struct Listing {
    pub(super) rows: Vec<Row>,
    /// The revision it is of; 0 when nothing could be read.
    pub(super) revision: i64,
    /// Keys seen, and keys that are there as far as it is known.
    seen: u64,
    of: u64,
    cut: Option<Why>,
    pub(super) fault: Option<Fault>,
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

    /// Whether the listing is of no use at all.
    pub(super) fn failed(&mut self) -> Option<Fault> {
        if self.revision == 0 {
            self.fault.take()
        } else {
            None
        }
    }
}

/// Lists until `deadline`. History compacted under it: once more from the beginning, then partial.
pub(super) async fn list(link: &Link, deadline: Tick) -> Listing {
    let first = list_once(link, deadline).await;
    if first
        .fault
        .as_ref()
        .is_some_and(|fault| fault.kind == Kind::Compacted)
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
    };
    for prefix in &link.settings.prefixes {
        let Err(fault) = list_prefix(link, prefix, deadline, &mut listing).await else {
            continue;
        };
        let fault = fault.on_prefix(prefix);
        listing.cut = Some(match fault.kind {
            Kind::Compacted => "etcd compacted its history faster than the keys could be read, twice".into(),
            _ => fault.error.to_string().into(),
        });
        // A refusal concerns one prefix; anything else would come again at the next.
        let other_prefixes = fault.kind == Kind::Denied;
        listing.fault = Some(fault);
        if !other_prefixes {
            break;
        }
    }
    listing
}

async fn list_prefix(link: &Link, prefix: &[u8], deadline: Tick, listing: &mut Listing) -> Result<(), Fault> {
    let mut cursor = Cursor::over(prefix, listing.revision);
    let mut rows = Rows::below(prefix);
    let seen_before = listing.seen;
    let mut first = true;
    while !cursor.done {
        if link.clock.tick() >= deadline {
            listing.cut = Some("the budget of the pass was used up".into());
            break;
        }
        let page = cursor.page(link).await;
        listing.revision = listing.revision.max(cursor.revision);
        let page =
            page.inspect_err(|_| listing.seen = listing.seen.saturating_sub(rows.left_open() as u64))?;
        if first {
            listing.of = seen_before + page.left;
            first = false;
        }
        take(page, &mut rows, listing);
    }
    if cursor.done {
        listing.rows.extend(rows.close(None));
    }
    // What is in queues that were not seen whole is not shown, so it does not count as seen.
    listing.seen = listing.seen.saturating_sub(rows.left_open() as u64);
    Ok(())
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
            .extend(rows.add(Record::of(kv, page.values_read), page.sent_at));
    }
    if let Some(last) = page.kvs.last() {
        listing.rows.extend(rows.close(Some(last.key())));
    }
}
