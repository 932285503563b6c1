//! Rows on screen and how updates reach them. Pure: no browser, time is an argument.
//!
//! Pages are stored as fetched. While the pointer or the focus is in the table its rows keep
//! their places: values change in place, everything else waits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use domain::lock::Lock;
use domain::names::LockId;
use domain::query::InventoryPage;

/// One row on screen.
#[derive(Debug, Clone, PartialEq)]
pub struct DisplayedRow {
    pub lock: Arc<Lock>,
    /// Time of the last change that is marked.
    pub changed_at: Option<i64>,
    /// No longer on this page of the list, but kept while the pointer is in the table.
    pub gone: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Page {
    /// Start of this page; `None` for the first one.
    cursor: Option<String>,
    rows: Vec<DisplayedRow>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// Query of the rows.
    query: String,
    pages: Vec<Page>,
    next: Option<String>,
    held: bool,
    waiting: BTreeMap<usize, Waiting>,
}

/// A fetched page that waits for the pointer to leave, and the number of rows it would move.
#[derive(Debug, Clone, PartialEq)]
struct Waiting {
    locks: Vec<Lock>,
    moves: u32,
}

impl Listing {
    pub fn new(query: String, page: InventoryPage) -> Self {
        let rows = page.locks.into_iter().map(|lock| DisplayedRow {
            lock: Arc::new(lock),
            changed_at: None,
            gone: false,
        });
        let first = Page {
            cursor: None,
            rows: rows.collect(),
        };
        Self {
            query,
            pages: vec![first],
            next: page.next_cursor,
            held: false,
            waiting: BTreeMap::new(),
        }
    }

    pub fn query(&self) -> &str {
        &self.query
    }

    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.rows.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn row(&self, mut index: usize) -> Option<&DisplayedRow> {
        for page in &self.pages {
            if index < page.rows.len() {
                return page.rows.get(index);
            }
            index -= page.rows.len();
        }
        None
    }

    /// Number of fetched pages.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Cursor of the next rows to fetch.
    pub fn next_cursor(&self) -> Option<&str> {
        self.next.as_deref()
    }

    /// Pages after the first that have any of these rows, with their cursors: a refresh fetches
    /// them.
    pub fn pages_within(&self, from: usize, to: usize) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut start = 0;
        for (index, page) in self.pages.iter().enumerate() {
            let end = start + page.rows.len();
            if let (true, Some(cursor)) = (start < to && end > from, &page.cursor) {
                found.push((index, cursor.clone()));
            }
            start = end;
        }
        found
    }

    /// Appends the page that begins at the end. Rows already on screen (moved down) stay where
    /// they are.
    pub fn append(&mut self, cursor: &str, page: InventoryPage) {
        if self.next.as_deref() != Some(cursor) {
            return;
        }
        let known: HashSet<&LockId> = self
            .pages
            .iter()
            .flat_map(|page| &page.rows)
            .map(|row| &row.lock.id)
            .collect();
        let rows: Vec<DisplayedRow> = page
            .locks
            .into_iter()
            .filter(|lock| !known.contains(&lock.id))
            .map(|lock| DisplayedRow {
                lock: Arc::new(lock),
                changed_at: None,
                gone: false,
            })
            .collect();
        self.pages.push(Page {
            cursor: Some(cursor.to_owned()),
            rows,
        });
        self.next = page.next_cursor;
    }

    /// Applies one refetched page, at `now` in milliseconds.
    pub fn refresh(&mut self, index: usize, page: InventoryPage, now: i64) {
        if index >= self.pages.len() {
            return;
        }
        match self.pages.get_mut(index + 1) {
            Some(following) if !self.held => following.cursor.clone_from(&page.next_cursor),
            Some(_) => {}
            None => self.next = page.next_cursor,
        }
        if self.held {
            let moves = self.update_in_place(index, &page.locks, now);
            self.waiting.insert(
                index,
                Waiting {
                    locks: page.locks,
                    moves,
                },
            );
        } else {
            self.replace_rows(index, page.locks, now);
        }
    }

    /// Freezes or releases the places of the rows.
    pub fn hold(&mut self, held: bool, now: i64) {
        self.held = held;
        if !held {
            self.release(now);
        }
    }

    /// Applies waiting pages.
    pub fn release(&mut self, now: i64) {
        for (index, waiting) in std::mem::take(&mut self.waiting) {
            self.replace_rows(index, waiting.locks, now);
        }
    }

    /// Number of rows that would be added, removed or moved.
    pub fn waiting(&self) -> u32 {
        self.waiting.values().map(|waiting| waiting.moves).sum()
    }

    fn update_in_place(&mut self, index: usize, locks: &[Lock], now: i64) -> u32 {
        let mut fresh: HashMap<&LockId, &Lock> = locks.iter().map(|lock| (&lock.id, lock)).collect();
        let rows = &mut self.pages[index].rows;
        let mut removed = 0;
        for row in rows.iter_mut() {
            if let Some(lock) = fresh.remove(&row.lock.id) {
                *row = next_of(Some(row), lock.clone(), now);
            } else {
                row.gone = true;
                removed += 1;
            }
        }
        let shown: HashSet<&LockId> = rows.iter().map(|row| &row.lock.id).collect();
        let stay = rows.iter().filter(|row| !row.gone).map(|row| &row.lock.id);
        let new_order = locks.iter().map(|lock| &lock.id).filter(|id| shown.contains(id));
        let moved = stay.zip(new_order).filter(|(now, then)| now != then).count();
        u32::try_from(removed + fresh.len() + moved).unwrap_or(u32::MAX)
    }

    fn replace_rows(&mut self, index: usize, locks: Vec<Lock>, now: i64) {
        let Some(page) = self.pages.get_mut(index) else {
            return;
        };
        let before = std::mem::take(&mut page.rows);
        let coming: HashSet<LockId> = locks.iter().map(|lock| lock.id.clone()).collect();
        let mut known: HashMap<LockId, DisplayedRow> =
            before.into_iter().map(|row| (row.lock.id.clone(), row)).collect();
        // Each row is on screen once: it leaves the page where it was before.
        for (other, page) in self.pages.iter_mut().enumerate() {
            if other != index && page.rows.iter().any(|row| coming.contains(&row.lock.id)) {
                let (moved, stay) = page.rows.drain(..).partition(|row| coming.contains(&row.lock.id));
                let moved: Vec<DisplayedRow> = moved;
                page.rows = stay;
                known.extend(moved.into_iter().map(|row| (row.lock.id.clone(), row)));
            }
        }
        let rows = locks
            .into_iter()
            .map(|lock| next_of(known.get(&lock.id), lock, now));
        self.pages[index].rows = rows.collect();
    }
}

/// The row as it is now, marked if the change is relevant to a user.
fn next_of(before: Option<&DisplayedRow>, lock: Lock, now: i64) -> DisplayedRow {
    let changed_at = match before {
        Some(before) if !is_noticed(&before.lock, &lock) => before.changed_at,
        _ => Some(now),
    };
    DisplayedRow {
        lock: Arc::new(lock),
        changed_at,
        gone: false,
    }
}

/// Renewals and passing time are not marked; another holder, state or queue length is.
fn is_noticed(before: &Lock, after: &Lock) -> bool {
    before.state != after.state
        || before.owner_id != after.owner_id
        || before.lease_id != after.lease_id
        || before.fencing_token != after.fencing_token
        || before.waiter_count != after.waiter_count
}

#[cfg(test)]
pub(in crate::pages) mod tests;
