//! Reads keys: page by page at one revision, or one key.
//!
//! Pages shrink when an answer would be too large, so that many large values cannot fill our memory.

use domain::observation::Tick;
use etcd_client::{GetOptions, KeyValue};

use super::fault::{Fault, Kind};
use super::link::Link;
use super::record::prefix_end;

/// Keys of one page.
const PAGE_KEYS_MAX: i64 = 2_000;
/// Largest answer taken, in bytes. etcd's own limit for one value is 1.5 MB.
const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Where a listing stands.
pub(super) struct Cursor {
    next: Vec<u8>,
    end: Vec<u8>,
    /// 0 until the first page told it.
    pub(super) revision: i64,
    limit: i64,
    pub(super) done: bool,
}

pub(super) struct Page {
    /// Just before the request was sent.
    pub(super) sent_at: Tick,
    pub(super) kvs: Vec<KeyValue>,
    /// Keys from the beginning of this page to the end of the range.
    pub(super) left: u64,
}

impl Cursor {
    /// All keys that begin with `prefix`, at `revision` (0: the newest, the same for all pages).
    pub(super) fn over(prefix: &[u8], revision: i64) -> Self {
        let next = if prefix.is_empty() {
            vec![0]
        } else {
            prefix.to_vec()
        };
        Self {
            next,
            end: prefix_end(prefix),
            revision,
            limit: PAGE_KEYS_MAX,
            done: false,
        }
    }

    /// The next page.
    pub(super) async fn page(&mut self, link: &Link) -> Result<Page, Fault> {
        loop {
            let sent_at = link.clock.tick();
            let options = GetOptions::new()
                .with_range(self.end.clone())
                .with_limit(self.limit)
                .with_revision(self.revision);
            match link
                .call(|client| get(client, self.next.clone(), options.clone()))
                .await
            {
                Ok(mut answer) => {
                    if self.revision == 0 {
                        self.revision = answer.header().map_or(0, etcd_client::ResponseHeader::revision);
                    }
                    let kvs = answer.take_kvs();
                    self.done = !answer.more() || kvs.is_empty();
                    if let Some(last) = kvs.last() {
                        self.next = [last.key(), &[0]].concat();
                    }
                    return Ok(Page {
                        sent_at,
                        kvs,
                        left: u64::try_from(answer.count()).unwrap_or(0),
                    });
                }
                Err(fault) if fault.kind == Kind::TooLarge && self.limit > 1 => {
                    self.limit = (self.limit / 8).max(1);
                }
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// One key, and when it was asked for.
pub(super) async fn one(link: &Link, key: &[u8]) -> Result<(Tick, Option<KeyValue>), Fault> {
    let sent_at = link.clock.tick();
    let mut answer = link
        .call(|client| get(client, key.to_vec(), GetOptions::new()))
        .await?;
    Ok((sent_at, answer.take_kvs().pop()))
}

async fn get(
    client: etcd_client::Client,
    key: Vec<u8>,
    options: GetOptions,
) -> Result<etcd_client::GetResponse, etcd_client::Error> {
    client
        .kv_client()
        .max_decoding_message_size(ANSWER_BYTES_MAX)
        .get(key, Some(options))
        .await
}
