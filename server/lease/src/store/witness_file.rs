//! The witness file next to an SQLite store that records the number of grants. A store restored from a
//! backup has fewer: start refuses it, because it would issue the same tokens again.
//!
//! Written after the commits it counts, without fsync: it may lag behind, and is never ahead.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WitnessFile {
    pub(super) store_id: String,
    pub(super) epoch: i64,
    pub(super) grants: i64,
}

impl WitnessFile {
    pub(super) fn path(store: &Path) -> PathBuf {
        let mut name = store.as_os_str().to_owned();
        name.push(".witness");
        PathBuf::from(name)
    }

    /// `None` when the file is missing or unreadable: it is an aid, not the store.
    pub(super) fn read(store: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(Self::path(store)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Replaces the file atomically.
    pub(super) fn write(&self, store: &Path) -> std::io::Result<()> {
        let path = Self::path(store);
        let next = path.with_extension("witness-next");
        std::fs::write(&next, serde_json::to_vec(self)?)?;
        std::fs::rename(next, path)
    }

    /// Whether the store is behind this record of it.
    pub(super) fn is_ahead_of(&self, store: &Self) -> bool {
        self.store_id == store.store_id
            && (self.epoch > store.epoch || (self.epoch == store.epoch && self.grants > store.grants))
    }
}
