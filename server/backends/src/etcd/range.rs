//! Reads keys: page by page at one revision, or one key.
//!
//! Pages shrink if a response would be too large, and grow again, so that large values cannot
//! fill memory. A key with a single too large value is read without it: etcd cannot read a part
//! of a value.

use domain::tick::Tick;
use etcd_client::{GetOptions, KeyValue};

use super::connection::Link;
use super::error::{EtcdError, EtcdErrorKind};
use super::record::prefix_end;

/// Keys of one page.
const PAGE_KEYS_MAX: i64 = 2_000;
/// Largest response, in bytes. By default etcd accepts no value over 1.5 MB.
pub(super) const ANSWER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Position of a listing.
pub(super) struct Cursor {
    next: Vec<u8>,
    end: Vec<u8>,
    /// 0 until the first page.
    pub(super) revision: i64,
    limit: i64,
    pub(super) done: bool,
}

pub(super) struct Page {
    /// Just before the request was sent.
    pub(super) sent_at: Tick,
    pub(super) kvs: Vec<KeyValue>,
    /// Whether the values were read with the keys.
    pub(super) values_read: bool,
    /// Keys from the beginning of this page to the end of the range.
    pub(super) left: u64,
}

impl Cursor {
    /// All keys that begin with `prefix`, at `revision` (0: the newest, the same for all
    /// pages).
    pub(super) fn new(prefix: &[u8], revision: i64) -> Self {
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
    pub(super) async fn page(&mut self, link: &Link) -> Result<Page, EtcdError> {
        let mut values_read = true;
        loop {
            let sent_at = link.clock.tick();
            let mut options = GetOptions::new()
                .with_range(self.end.clone())
                .with_limit(self.limit)
                .with_revision(self.revision);
            if !values_read {
                options = options.with_keys_only();
            }
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
                    self.limit = (self.limit * 2).min(PAGE_KEYS_MAX);
                    return Ok(Page {
                        sent_at,
                        kvs,
                        values_read,
                        left: u64::try_from(answer.count()).unwrap_or(0),
                    });
                }
                Err(fault) if fault.kind == EtcdErrorKind::TooLarge && self.limit > 1 => {
                    self.limit = (self.limit / 8).max(1);
                }
                Err(fault) if fault.kind == EtcdErrorKind::TooLarge && values_read => values_read = false,
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// One key read by its name.
pub(super) struct KeyRead {
    /// Just before the request was sent.
    pub(super) sent_at: Tick,
    pub(super) kv: KeyValue,
    pub(super) value_read: bool,
}

/// Reads one key, without its value if that is too large.
pub(super) async fn read_key(link: &Link, key: &[u8]) -> Result<Option<KeyRead>, EtcdError> {
    let mut value_read = true;
    loop {
        let sent_at = link.clock.tick();
        let options = if value_read {
            GetOptions::new()
        } else {
            GetOptions::new().with_keys_only()
        };
        match link
            .call(|client| get(client, key.to_vec(), options.clone()))
            .await
        {
            Ok(mut answer) => {
                return Ok(answer.take_kvs().pop().map(|kv| KeyRead {
                    sent_at,
                    kv,
                    value_read,
                }));
            }
            Err(fault) if fault.kind == EtcdErrorKind::TooLarge && value_read => value_read = false,
            Err(fault) => return Err(fault),
        }
    }
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
