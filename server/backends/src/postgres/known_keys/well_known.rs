//! Keys that tools have hard-coded or derive from the name of the database.

use sha2::{Digest, Sha224};

use super::hashing;
use crate::postgres::advisory::AdvisoryKey;

/// Names that tools hash with a function of the server, or as configured names are.
pub(super) const NAMES: [(&str, &str); 2] = [
    ("pg_partman run_maintenance", "pg_partman maintenance"),
    ("atlas_migrate_execute", "Atlas migrations"),
];

const CONSTANTS: [(i64, &str); 7] = [
    (72_707_369, "Prisma Migrate"),
    // CRC-64 (ECMA) of `goose`.
    (5_887_940_537_704_921_958, "goose migrations"),
    (7_241_865_325_823_964, "node-pg-migrate migrations"),
    (-8_525_285_245_963_000_605, "postgres-migrations"),
    (3_853_314_791_062_309_107, "Kysely migrations"),
    (9_628_173_550_095_224, "tern migrations"),
    (12_340_078_987_004_321, "pgBackRest backup"),
];

/// The first number; the second is made of the table's oid.
const PG_REPACK: i32 = 16_185_446;
/// The letters `Flyway` as a number; a hash of the history table's name is added, at most 2^31 either way.
const FLYWAY: i64 = 77_431_708_279_161;
const RAILS_SALT: i64 = 2_053_462_845;
const SQLX_SALT: i64 = 0x3d32_ad9e;
const GOLANG_MIGRATE_SALT: u32 = 1_486_364_155;

/// The tool, and how its key is made.
pub(super) fn name(key: AdvisoryKey, database: &str) -> Option<(&'static str, &'static str)> {
    const CONSTANT: &str = "its constant";
    let key = match key {
        AdvisoryKey::One(key) => key,
        AdvisoryKey::Two(PG_REPACK, _) => return Some(("pg_repack", CONSTANT)),
        AdvisoryKey::Two(..) => return None,
    };
    if let Some((_, name)) = CONSTANTS.iter().find(|(constant, _)| *constant == key) {
        return Some((name, CONSTANT));
    }
    const DATABASE: &str = "a hash of the name of the database";
    let crc = crc32fast::hash(database.as_bytes());
    let golang = crc32fast::hash(format!("public\0schema_migrations\0{database}").as_bytes());
    match key {
        _ if key == RAILS_SALT.wrapping_mul(i64::from(crc)) => Some(("Rails migrations", DATABASE)),
        _ if key == SQLX_SALT.wrapping_mul(i64::from(crc)) => Some(("sqlx migrations", DATABASE)),
        _ if key == i64::from(golang.wrapping_mul(GOLANG_MIGRATE_SALT)) => Some(("golang-migrate", DATABASE)),
        _ if key == pg_boss(database) => Some(("pg-boss schema", DATABASE)),
        _ if i32::try_from(key.wrapping_sub(FLYWAY)).is_ok() => Some((
            "Flyway migrations",
            "its constant with a hash of the history table's name",
        )),
        _ => None,
    }
}

fn pg_boss(database: &str) -> i64 {
    hashing::be_i64(&Sha224::digest(format!("{database}.pgboss.pgboss")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn migration_tools_are_known_by_the_name_of_the_database() {
        // Keys computed by the rule of each tool for one database.
        let known = |key, database| name(AdvisoryKey::One(key), database).map(|(name, _)| name);
        // 2053462845 * crc32('orders'), as Ruby computes it.
        let rails = 2_053_462_845 * 0xe52f_fdee;
        assert_eq!(crc32fast::hash(b"orders"), 0xe52f_fdee);
        assert_eq!(known(rails, "orders"), Some("Rails migrations"));
        assert_eq!(known(rails, "other"), None);
        assert_eq!(known(FLYWAY - 5, "x"), Some("Flyway migrations"));
        assert_eq!(known(72_707_369, "x"), Some("Prisma Migrate"));
        assert_eq!(
            name(AdvisoryKey::Two(PG_REPACK, -2_147_467_264), "x").map(|(name, _)| name),
            Some("pg_repack")
        );
        assert_eq!(name(AdvisoryKey::Two(1, 2), "x"), None);
    }
}
