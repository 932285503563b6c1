//! The migrations of both stores, in their order. Owns the list of files in `migrations/`.
//!
//! Not `sqlx::migrate!`, nor sqlx's other macros: they compile sqlx, its drivers, TLS and SQLite a second time, for the compiler.

use std::sync::LazyLock;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

/// Name and text of each file in `migrations/sqlite` or `migrations/postgres`: both have the same names.
macro_rules! files {
    ($store:literal) => {
        files!(
            $store,
            "0001_leases",
            "0002_audit",
            "0003_users",
            "0004_unlocks",
            "0005_history",
            "0006_alerts",
            "0007_notifications"
        )
    };
    ($store:literal, $($name:literal),+) => {
        [$((
            $name,
            include_str!(concat!("../../../../migrations/", $store, "/", $name, ".sql")),
        )),+]
    };
}

pub(super) static SQLITE: LazyLock<Migrator> = LazyLock::new(|| migrator(&files!("sqlite")));
pub(super) static POSTGRES: LazyLock<Migrator> = LazyLock::new(|| migrator(&files!("postgres")));

fn migrator(files: &[(&'static str, &'static str)]) -> Migrator {
    let migrations = files.iter().filter_map(|(name, text)| migration(name, text));
    Migrator::with_migrations(migrations.collect())
}

/// Number and description of a file, as sqlx reads them from its name.
fn migration(name: &str, text: &'static str) -> Option<Migration> {
    let (number, description) = name.split_once('_')?;
    Some(Migration::new(
        number.parse().ok()?,
        description.replace('_', " ").into(),
        MigrationType::Simple,
        text.into_sql_str(),
        false,
    ))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[tokio::test]
    async fn each_file_of_both_stores_is_a_migration() {
        // As sqlx reads the folder; numbered from 1 without a gap, with the same names on both stores.
        let described = |migrator: &Migrator| -> Vec<(i64, String, Vec<u8>)> {
            let migrations = migrator.iter().map(|migration| {
                let checksum = migration.checksum.to_vec();
                (migration.version, migration.description.to_string(), checksum)
            });
            migrations.collect()
        };
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
        for (store, ours) in [("sqlite", &SQLITE), ("postgres", &POSTGRES)] {
            let read = Migrator::new(folder.join(store)).await.unwrap();
            assert_eq!(described(ours), described(&read), "{store}");
        }
        let numbers: Vec<i64> = SQLITE.iter().map(|migration| migration.version).collect();
        let expected: Vec<i64> = (1..=i64::try_from(numbers.len()).unwrap()).collect();
        assert_eq!(numbers, expected);
    }
}
