//! Feeds the rows on screen: the first page, pages added by scrolling, and refetches after
//! events.

use leptos::prelude::*;
use leptos::task::spawn_local;

use super::Loaded;
use super::row_buffer::Listing;
use super::scroll::{PORTION, Scroll};
use super::url_state::Address;
use crate::api::ApiError;
use crate::live::{Live, clock};
use crate::pages::locks::data::inventory;

/// A page after the first that could not be fetched. Identified by its index, because its cursor changes when the page before
/// it changes.
#[derive(Debug, Clone, PartialEq)]
struct FailedPage {
    index: usize,
    error: ApiError,
}

#[derive(Clone, Copy)]
pub struct LockPaging {
    pub listing: RwSignal<Listing>,
    pub scroll: Scroll,
    live: Live,
    address: Memo<Address>,
    /// A next page is being fetched.
    fetching: StoredValue<bool>,
    /// In order of failure, the latest last.
    failed: RwSignal<Vec<FailedPage>>,
}

impl LockPaging {
    pub fn new(loaded: Signal<Loaded>, address: Memo<Address>, live: Live) -> Self {
        let first = loaded.get_untracked();
        let listing = Listing::new(first.query, first.page);
        let scroll = Scroll::new(listing.len());
        let feed = Self {
            listing: RwSignal::new(listing),
            scroll,
            live,
            address,
            fetching: StoredValue::new(false),
            failed: RwSignal::new(Vec::new()),
        };
        feed.follow(loaded);
        feed
    }

    /// In the browser only: effects do not run on the server.
    fn follow(self, loaded: Signal<Loaded>) {
        let Self {
            listing,
            scroll,
            live,
            ..
        } = self;
        scroll.watch(listing);
        Effect::new(move |before: Option<()>| {
            let loaded = loaded.get();
            live.set_shown(loaded.page.revision);
            // The listing was created from the first one.
            if before.is_some() {
                self.apply_loaded(loaded);
            }
        });
        Effect::new(move |before: Option<u64>| {
            let flushes = live.flushes();
            if before.is_some_and(|before| before != flushes) {
                listing.update(|listing| listing.release(clock::now_ms()));
                scroll.measure(listing);
            }
            flushes
        });
        Effect::new(move |_| {
            scroll.seen();
            let rows = listing.with(Listing::len);
            if scroll.window().is_near_end(rows) {
                self.fetch_next();
            }
        });
        on_cleanup(move || live.hold_back(0));
    }

    fn apply_loaded(self, loaded: Loaded) {
        let Self {
            listing,
            scroll,
            live,
            ..
        } = self;
        if listing.with_untracked(|listing| listing.query() != loaded.query) {
            listing.set(Listing::new(loaded.query, loaded.page));
            self.failed.set(Vec::new());
            window().scroll_to_with_x_and_y(0.0, 0.0);
        } else {
            listing.update(|listing| listing.refresh(0, loaded.page, clock::now_ms()));
            self.refresh_in_sight();
        }
        live.hold_back(listing.with_untracked(Listing::waiting));
        scroll.measure(listing);
    }

    /// The first page comes with the URL; the other visible pages are fetched here.
    fn refresh_in_sight(self) {
        let seen = self.scroll.window().seen;
        let pages = self
            .listing
            .with_untracked(|listing| listing.pages_within(seen.start, seen.end));
        for (index, cursor) in pages {
            self.fetch(index, cursor);
        }
    }

    fn fetch_next(self) {
        let next = self
            .listing
            .with_untracked(|listing| Some((listing.pages(), listing.next_cursor()?.to_owned())));
        let Some((index, cursor)) = next.filter(|_| !self.fetching.get_value()) else {
            return;
        };
        self.fetching.set_value(true);
        self.fetch(index, cursor);
    }

    /// Why some rows are missing or older than the others; tracked.
    pub fn failure(self) -> Option<ApiError> {
        self.failed
            .with(|failed| failed.last().map(|page| page.error.clone()))
    }

    /// Fetches every failed page again, also those out of sight.
    pub fn retry(self) {
        let failed = self.failed.try_update(std::mem::take).unwrap_or_default();
        let (pages, count) = self
            .listing
            .with_untracked(|listing| (listing.pages_within(0, usize::MAX), listing.pages()));
        for (index, cursor) in pages {
            if failed.iter().any(|page| page.index == index) {
                self.fetch(index, cursor);
            }
        }
        if failed.iter().any(|page| page.index >= count) {
            self.fetch_next();
        }
    }

    /// Fetches one page and applies it, unless the query changed meanwhile.
    fn fetch(self, index: usize, cursor: String) {
        let query = self
            .address
            .with_untracked(|address| address.query_from(Some(&cursor), PORTION));
        let (belongs_to, is_next) = self
            .listing
            .with_untracked(|listing| (listing.query().to_owned(), index == listing.pages()));
        spawn_local(async move {
            let answer = inventory(query).await;
            self.fetching.try_set_value(false);
            let is_same_query = self
                .listing
                .try_with_untracked(|listing| listing.query() == belongs_to);
            if is_same_query != Some(true) {
                return;
            }
            let error = answer.as_ref().err().cloned();
            self.failed
                .try_update(|failed| record_response(failed, index, error));
            if let Ok(page) = answer {
                self.listing.try_update(|listing| match is_next {
                    true => listing.append(&cursor, page),
                    false => listing.refresh(index, page, clock::now_ms()),
                });
                if let Some(waiting) = self.listing.try_with_untracked(Listing::waiting) {
                    self.live.hold_back(waiting);
                }
                self.scroll.measure(self.listing);
            }
        });
    }
}

/// Keeps the failures of all other pages: each stays until its own page is fetched.
fn record_response(failed: &mut Vec<FailedPage>, index: usize, error: Option<ApiError>) {
    failed.retain(|page| page.index != index);
    failed.extend(error.map(|error| FailedPage { index, error }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failed_page_stays_reported_until_it_is_fetched() {
        let error = || Some(ApiError::Unreachable("it did not answer".to_owned()));
        let mut failed = Vec::new();
        let mut failed_after = |index, error| {
            record_response(&mut failed, index, error);
            failed.iter().map(|page| page.index).collect::<Vec<_>>()
        };
        assert_eq!(failed_after(2, error()), [2]);
        assert_eq!(failed_after(1, None), [2], "another page arrived");
        assert_eq!(failed_after(5, error()), [2, 5], "page 2 is still missing");
        assert_eq!(failed_after(2, error()), [5, 2], "once per page");
        assert_eq!(failed_after(5, None), [2]);
        assert!(failed_after(2, None).is_empty());
    }
}
