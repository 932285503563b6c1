//! What the store knows of rules, silences and open alerts, kept in memory by its revision: every write raises it in its own
//! transaction, so that a second in which nothing changed costs one small question, and a page none.
//!
//! **Invariant:** who wrote reads what was written: a write of this process throws the copy away after its commit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use domain::alerts::Silence;
use domain::observation::Tick;

use super::rules::KeptRule;
use super::store::{self, Kept};
use super::{Alerts, silences};
use crate::db::{Tx, on_either};

/// A copy that was found good so lately is taken unseen, in milliseconds: another server's writes are seen so late.
const FRESH_MS: i64 = 1_500;

/// One revision.
#[derive(Debug, Default)]
pub(super) struct Book {
    revision: i64,
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
}

impl Shelf {
    /// After the commit of an own write.
    pub(super) fn wrote(&self) {
        self.writes.fetch_add(1, Ordering::SeqCst);
        *self.copy.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
        let writes = self.shelf.writes.load(Ordering::SeqCst);
        let at = self.clock.tick();
        // Before what it tells of: a write between the two is read again, never missed.
        let revision = store::revision(&self.db).await?;
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
