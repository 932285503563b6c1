//! Page data that many open tabs request at once: computed once per query, scope and stamp.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;

use domain::access::Visible;
use parking_lot::Mutex;

/// Queries with a stored page; the least recently used is dropped.
const ENTRIES_MAX: usize = 64;

/// Revision of the data, and a coarse time: a page shows ages.
pub(super) type Stamp = (u64, i64);

pub(super) struct PageCache<T> {
    /// Most recently used last.
    entries: Mutex<VecDeque<Arc<Entry<T>>>>,
    /// Whether a page is small enough. A larger one answers the requests that wait for it.
    is_stored: fn(&T) -> bool,
}

struct Entry<T> {
    search: String,
    visible: Visible,
    /// Locked while it is computed: concurrent requests wait for one result.
    page: tokio::sync::Mutex<Option<(Stamp, T)>>,
}

impl<T: Clone> PageCache<T> {
    pub(super) fn new() -> Self {
        Self::of_small_pages(|_| true)
    }

    pub(super) fn of_small_pages(is_small: fn(&T) -> bool) -> Self {
        Self {
            entries: Mutex::new(VecDeque::new()),
            is_stored: is_small,
        }
    }

    /// The stored page, or the computed one. Errors are not stored. A page answers every request that arrived before its
    /// computation began, even if data has changed since; otherwise each waiting request would compute again.
    pub(super) async fn get<E>(
        &self,
        (search, visible): (&str, &Visible),
        stamp: impl Fn() -> Stamp,
        compute: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        let entry = self.entry(search, visible);
        let requested = stamp();
        let mut stored = entry.page.lock().await;
        let is_new = |stored_stamp: &Stamp| stored_stamp.0 >= requested.0 && stored_stamp.1 >= requested.1;
        if let Some((_, page)) = stored.as_ref().filter(|(stored_stamp, _)| is_new(stored_stamp)) {
            return Ok(page.clone());
        }
        let started = stamp();
        let page = compute.await?;
        *stored = Some((started, page.clone()));
        if !(self.is_stored)(&page) {
            self.entries.lock().retain(|other| !Arc::ptr_eq(other, &entry));
        }
        Ok(page)
    }

    fn entry(&self, search: &str, visible: &Visible) -> Arc<Entry<T>> {
        let mut entries = self.entries.lock();
        let is_match = |entry: &Arc<Entry<T>>| entry.search == search && entry.visible == *visible;
        let found = entries
            .iter()
            .position(is_match)
            .and_then(|at| entries.remove(at));
        let entry = found.unwrap_or_else(|| {
            Arc::new(Entry {
                search: search.to_owned(),
                visible: visible.clone(),
                page: tokio::sync::Mutex::new(None),
            })
        });
        if entries.len() >= ENTRIES_MAX {
            entries.pop_front();
        }
        entries.push_back(entry.clone());
        entry
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use domain::access::Grants;

    use super::*;

    #[tokio::test]
    async fn a_page_is_computed_once_per_query_scope_and_stamp() {
        let (cache, computed) = (PageCache::new(), Cell::new(0));
        let (all, none) = (Visible::default(), Visible::to(&Grants::default()));
        let get = async |search: &str, visible: &Visible, stamp| {
            let compute = async {
                computed.set(computed.get() + 1);
                Ok::<_, ()>(computed.get())
            };
            cache.get((search, visible), || stamp, compute).await
        };
        assert_eq!(get("?a", &all, (1, 0)).await, Ok(1));
        assert_eq!(get("?a", &all, (1, 0)).await, Ok(1));
        assert_eq!(get("?a", &none, (1, 0)).await, Ok(2));
        assert_eq!(get("?b", &all, (1, 0)).await, Ok(3));
        assert_eq!(get("?a", &all, (2, 0)).await, Ok(4));
        for number in 0..ENTRIES_MAX {
            get(&format!("?{number}"), &all, (2, 0)).await.unwrap();
        }
        assert!(cache.entries.lock().len() <= ENTRIES_MAX);
        assert_eq!(get("?a", &all, (2, 0)).await, Ok(4 + ENTRIES_MAX + 1));
    }

    #[tokio::test]
    async fn those_who_wait_share_the_next_computation() {
        // The revision has moved on with each request; the first computation began before the others came.
        let (cache, computed) = (PageCache::new(), Cell::new(0));
        let (all, revision) = (Visible::default(), Cell::new(0));
        let get = async || {
            revision.set(revision.get() + 1);
            let compute = async {
                computed.set(computed.get() + 1);
                tokio::task::yield_now().await;
                Ok::<_, ()>(computed.get())
            };
            cache.get(("", &all), || (revision.get(), 0), compute).await
        };
        let results = futures::join!(get(), get(), get(), get());
        assert_eq!(results, (Ok(1), Ok(2), Ok(2), Ok(2)));
    }

    #[tokio::test]
    async fn a_large_page_is_not_stored() {
        // The requests that wait for it get it.
        let (cache, computed) = (
            PageCache::<usize>::of_small_pages(|size| *size < 10),
            Cell::new(0),
        );
        let all = Visible::default();
        let get = async |size: usize| {
            let compute = async {
                computed.set(computed.get() + 1);
                tokio::task::yield_now().await;
                Ok::<_, ()>(size)
            };
            cache.get(("", &all), || (1, 0), compute).await
        };
        let results = futures::join!(get(10), get(10), get(10));
        assert_eq!((results, computed.get()), ((Ok(10), Ok(10), Ok(10)), 1));
        assert!(cache.entries.lock().is_empty());
        assert_eq!((get(9).await, get(9).await, computed.get()), (Ok(9), Ok(9), 2));
    }

    #[tokio::test]
    async fn a_failure_is_not_stored() {
        let cache = PageCache::new();
        let all = Visible::default();
        let failed: Result<u8, &str> = cache.get(("", &all), || (1, 0), async { Err("down") }).await;
        assert_eq!(failed, Err("down"));
        assert_eq!(
            cache.get(("", &all), || (1, 0), async { Ok::<_, &str>(7) }).await,
            Ok(7)
        );
    }
}
