//! What the store knows of rules, silences and open alerts, kept in memory by its revision: every write raises it in its own
//! transaction, so that a second in which nothing changed costs no more than one small question, and a page none. A file of SQLite
//! belongs to one server: there it costs nothing.
//!
//! **Invariant:** who wrote reads what was written: a write of this process throws the copy away after its commit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::alerts::Silence;
use domain::observation::Tick;

use super::rules::KeptRule;
use super::store::{self, Kept};
use super::{Alerts, silences};
use crate::db::{Db, Tx, on_either};

/// A copy that was found good so lately is taken unseen, in milliseconds: another server's writes are seen so late.
const FRESH_MS: i64 = 1_500;

/// One revision.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) revision: i64,
    /// Also those that were removed.
    pub(super) rules: Vec<KeptRule>,
    /// Also those that ended since it was read.
    pub(super) silences: Vec<Silence>,
    pub(super) open: Vec<Kept>,
}

/// The copy, and when it was last found good.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    copy: Mutex<Option<(Arc<Book>, Tick)>>,
    /// Own writes.
    writes: AtomicU64,
    /// Questions to the store.
    asked: AtomicU64,
}

impl Shelf {
    /// After the commit of an own write.
    pub(super) fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    fn get(&self) -> Option<(Arc<Book>, Tick)> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Unless somebody here wrote since `writes` was read.
    fn put(&self, book: &Arc<Book>, at: Tick, writes: u64) {
        let mut copy = self.copy.lock().unwrap_or_else(PoisonError::into_inner);
        if self.writes.load(Ordering::SeqCst) == writes {
            *copy = Some((book.clone(), at));
        }
    }
}

impl Alerts {
    /// As it is now.
    pub(super) async fn book(&self) -> Result<Arc<Book>, sqlx::Error> {
        self.book_of(None).await
    }

    /// The same, where the revision was read a moment ago.
    pub(super) async fn book_of(&self, revision: Option<i64>) -> Result<Arc<Book>, sqlx::Error> {
        // A file is one server's own: what it wrote itself has thrown the copy away.
        if let (Db::Sqlite(_), Some((book, _))) = (&self.db, self.shelf.get()) {
            return Ok(book);
        }
        let writes = self.shelf.writes.load(Ordering::SeqCst);
        let at = self.clock.tick();
        self.shelf.asked.fetch_add(1, Ordering::Relaxed);
        // Before what it tells of: a write between the two is read again, never missed.
        let revision = match revision {
            Some(revision) => revision,
            None => store::revision(&self.db).await?,
        };
        let known = self
            .shelf
            .get()
            .map(|(book, _)| book)
            .filter(|book| book.revision == revision);
        let book = match known {
            Some(book) => book,
            None => Arc::new(Book {
                revision,
                rules: self.read_rules().await?,
                silences: silences::read(&self.db, self.now()).await?,
                open: store::open(&self.db).await?,
            }),
        };
        self.shelf.put(&book, at, writes);
        Ok(book)
    }

    /// As it was a moment ago at most: what is asked for at every look at a page.
    pub(super) async fn glance(&self) -> Result<Arc<Book>, sqlx::Error> {
        let fresh = self
            .shelf
            .get()
            .filter(|(_, at)| self.clock.tick().since(*at) <= FRESH_MS);
        match fresh {
            Some((book, _)) => Ok(book),
            None => self.book().await,
        }
    }
}

/// In the transaction of every change of rules, silences and alerts, before it touches their rows: so all take their turn
/// in one order.
pub(super) async fn turn_page(tx: &mut Tx) -> Result<(), sqlx::Error> {
    let raise = "UPDATE alert_evaluator SET revision = revision + 1";
    on_either!(tx, Tx, |tx| sqlx::query(raise)
        .execute(&mut **tx)
        .await?
        .rows_affected());
    Ok(())
}
