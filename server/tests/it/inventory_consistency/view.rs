//! The console's inventory: the whole list, read page by page as any client reads it.

use crate::support::{TestServer, client};
use std::time::Duration;

use serde_json::Value;

use super::ledger::{Holder, LockPlace, Locks};
use super::{coordinator, keys, table};

/// Small, so that cursors are used.
const PAGE: usize = 60;

pub(super) struct View {
    client: reqwest::Client,
    url: String,
}

/// One reading of the list, or of one backend's part of it.
pub(super) struct Shown {
    pub(super) locks: Locks,
    /// Shown as stale.
    pub(super) stale: Vec<LockPlace>,
    /// Every requested backend was live with complete coverage, on each page.
    pub(super) is_complete: bool,
}

impl View {
    pub(super) fn new(console: &TestServer) -> Self {
        Self {
            client: client(console.operator_token(), Duration::from_secs(5)),
            url: console.url(""),
        }
    }

    pub(super) async fn all(&self) -> Shown {
        self.read("").await
    }

    pub(super) async fn backend(&self, backend: &str) -> Shown {
        self.read(&format!("&backend={backend}")).await
    }

    async fn read(&self, filter: &str) -> Shown {
        let mut shown = Shown {
            locks: Locks::new(),
            stale: Vec::new(),
            is_complete: true,
        };
        let mut cursor = None;
        loop {
            let mut url = format!("{}/v1/inventory?sort=resource&limit={PAGE}{filter}", self.url);
            if let Some(cursor) = &cursor {
                url = format!("{url}&cursor={cursor}");
            }
            let page: Value = self.client.get(url).send().await.unwrap().json().await.unwrap();
            shown.is_complete &= page["complete"] == true;
            for lock in page["locks"]
                .as_array()
                .unwrap_or_else(|| panic!("no locks in {page}"))
            {
                shown.add(lock);
            }
            match page["nextCursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return shown,
            }
        }
    }
}

impl Shown {
    fn add(&mut self, lock: &Value) {
        let text = |field: &str| lock[field].as_str().map(str::to_owned);
        let backend = [table::BACKEND, keys::BACKEND, coordinator::BACKEND];
        let backend = backend
            .into_iter()
            .find(|name| lock["backend"] == **name)
            .unwrap();
        let place: LockPlace = (backend, text("source").unwrap(), text("resource").unwrap());
        if lock["state"] == "stale" {
            self.stale.push(place.clone());
        }
        let holder = Holder {
            owner: text("ownerId").unwrap_or_default(),
            token: text("fencingToken"),
        };
        let before = self.locks.insert(place, holder);
        assert!(before.is_none(), "shown twice: {lock}");
    }

    pub(super) fn all_stale(&self) -> bool {
        self.stale.len() == self.locks.len()
    }
}
