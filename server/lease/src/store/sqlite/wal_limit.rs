//! Size at which the write-ahead log is checkpointed: a page that is written often until then is copied once.

use std::path::Path;

use runtime::disk;
use rusqlite::Connection;

/// 64 MB.
const BYTES_MAX: u64 = 16_000 * 4_096;
/// With little free space, the log may use this fraction of it: a log that fills the disk cannot be checkpointed.
const FREE_SHARE: u64 = 4;
const BYTES_MIN: u64 = 1024 * 1024;
/// SQLite has no smaller pages.
const PAGE_BYTES_MIN: u64 = 512;

/// # Errors
/// The file cannot be read.
pub(super) fn set(writer: &Connection, path: &Path) -> rusqlite::Result<()> {
    let page_bytes: i64 = writer.pragma_query_value(None, "page_size", |row| row.get(0))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let pages = pages(disk::free(folder), page_bytes.unsigned_abs());
    writer.pragma_update(None, "wal_autocheckpoint", pages)
}

/// SQLite counts the log in pages of the file, whose size was chosen when the file was created.
fn pages(free_bytes: Option<u64>, page_bytes: u64) -> i64 {
    let bytes = free_bytes.map_or(BYTES_MAX, |free| (free / FREE_SHARE).clamp(BYTES_MIN, BYTES_MAX));
    (bytes / page_bytes.max(PAGE_BYTES_MIN)).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::super::open;
    use super::*;

    #[test]
    fn the_log_has_the_same_size_with_pages_of_every_size() {
        for page_bytes in [512, 4_096, 65_536] {
            let log_bytes = |free| pages(free, page_bytes).unsigned_abs() * page_bytes;
            assert_eq!(log_bytes(None), BYTES_MAX, "{page_bytes}");
            assert_eq!(log_bytes(Some(u64::MAX)), BYTES_MAX, "{page_bytes}");
            assert_eq!(log_bytes(Some(64 << 20)), 16 << 20, "{page_bytes}");
            assert_eq!(log_bytes(Some(0)), BYTES_MIN, "{page_bytes}");
        }
    }

    #[test]
    fn the_page_size_of_an_existing_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("leases.db");
        let created = Connection::open(&path).unwrap();
        created
            .execute_batch("PRAGMA page_size = 65536; CREATE TABLE t (x)")
            .unwrap();
        drop(created);
        let writer = open::writer(&path).unwrap();
        let limit: i64 = writer
            .pragma_query_value(None, "wal_autocheckpoint", |row| row.get(0))
            .unwrap();
        assert!(limit.unsigned_abs() * 65_536 <= BYTES_MAX, "{limit} pages");
    }
}
