//! Names for advisory keys: of well-known tools, and from the configuration.

use std::collections::HashMap;

use sqlx::Row;

use super::advisory::AdvisoryKey;
use super::connection::Link;
use super::error::StatementError;
use config::postgres::AdvisoryNameConfig;

const PRISMA: i64 = 72_707_369;
/// CRC-64 (ECMA) of `goose`.
const GOOSE: i64 = 5_887_940_537_704_921_958;
/// The letters `Flyway` as a number; a hash of the history table's name is added, at most 2^31 either way.
const FLYWAY: i64 = 77_431_708_279_161;
const RAILS_SALT: i64 = 2_053_462_845;
const SQLX_SALT: i64 = 0x3d32_ad9e;
const GOLANG_MIGRATE_SALT: u32 = 1_486_364_155;

/// The server's `hashtext` and `hashtextextended` of each configured `hash_of`.
pub(super) type Hashes = HashMap<String, (i32, i64)>;

const HASHES: &str = "SELECT text, hashtext(text), hashtextextended(text, 0) FROM unnest($1::text[]) AS text";

pub(super) async fn hashes(
    link: &mut Link<'_>,
    names: &[AdvisoryNameConfig],
) -> Result<Hashes, StatementError> {
    let texts: Vec<&str> = names.iter().filter_map(|name| name.hash_of.as_deref()).collect();
    if texts.is_empty() {
        return Ok(Hashes::new());
    }
    let rows = link.rows(sqlx::query(HASHES).bind(texts)).await?;
    let entries = rows
        .iter()
        .filter_map(|row| Some((row.try_get(0).ok()?, (row.try_get(1).ok()?, row.try_get(2).ok()?))));
    Ok(entries.collect())
}

/// Name of a key: from the configuration first, then of well-known tools.
pub(super) fn name(
    key: AdvisoryKey,
    database: &str,
    names: &[AdvisoryNameConfig],
    hashes: &Hashes,
) -> Option<String> {
    names
        .iter()
        .find_map(|entry| configured(key, entry, hashes))
        .or_else(|| well_known(key, database))
}

fn configured(key: AdvisoryKey, entry: &AdvisoryNameConfig, hashes: &Hashes) -> Option<String> {
    let shown = |how: &str| match (&entry.name, &entry.hash_of) {
        (Some(name), _) => name.clone(),
        (None, Some(text)) => format!("{how} of {text:?}"),
        (None, None) => "named in the configuration".to_owned(),
    };
    let written = match key {
        AdvisoryKey::One(key) => entry.key == Some(key),
        AdvisoryKey::Two(first, second) => {
            entry.key1 == Some(first) && entry.key2.is_none_or(|key2| key2 == second)
        }
    };
    if written {
        return Some(shown("key"));
    }
    let text = entry.hash_of.as_ref()?;
    let gem = (crc32(text.as_bytes()) & 0x7fff_ffff).cast_signed();
    let hashed = hashes.get(text).copied();
    match (key, hashed) {
        (AdvisoryKey::One(key), Some((_, long))) if key == long => Some(shown("hashtextextended")),
        (AdvisoryKey::One(key), Some((short, _))) if key == i64::from(short) => Some(shown("hashtext")),
        (AdvisoryKey::Two(first, second), Some((short, _))) if first == short || second == short => {
            Some(shown("hashtext"))
        }
        (AdvisoryKey::Two(first, _), _) if first == gem => Some(shown("with_advisory_lock's hash")),
        _ => None,
    }
}

fn well_known(key: AdvisoryKey, database: &str) -> Option<String> {
    let AdvisoryKey::One(key) = key else { return None };
    let crc = crc32(database.as_bytes());
    let golang = crc32(format!("public\0schema_migrations\0{database}").as_bytes());
    let name = match key {
        PRISMA => "Prisma Migrate",
        GOOSE => "goose migrations",
        _ if key == RAILS_SALT.wrapping_mul(i64::from(crc)) => "Rails migrations",
        _ if key == SQLX_SALT.wrapping_mul(i64::from(crc)) => "sqlx migrations",
        _ if key == i64::from(golang.wrapping_mul(GOLANG_MIGRATE_SALT)) => "golang-migrate",
        _ if i32::try_from(key.wrapping_sub(FLYWAY)).is_ok() => "Flyway migrations",
        _ => return None,
    };
    Some(name.to_owned())
}

/// CRC-32 as in zlib (reflected, polynomial 0xEDB88320).
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> AdvisoryNameConfig {
        AdvisoryNameConfig {
            key: None,
            key1: None,
            key2: None,
            hash_of: None,
            name: None,
        }
    }

    #[test]
    fn checksums_are_those_of_zlib() {
        // The standard check value of CRC-32.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_configured_key_name_takes_precedence() {
        // The same key is Prisma's unless the configuration names it.
        assert_eq!(
            name(AdvisoryKey::One(PRISMA), "db", &[], &Hashes::new()).as_deref(),
            Some("Prisma Migrate")
        );
        let mine = AdvisoryNameConfig {
            key: Some(PRISMA),
            name: Some("mine".to_owned()),
            ..entry()
        };
        assert_eq!(
            name(AdvisoryKey::One(PRISMA), "db", &[mine], &Hashes::new()).as_deref(),
            Some("mine")
        );
        let first = AdvisoryNameConfig {
            key1: Some(-3),
            name: Some("jobs".to_owned()),
            ..entry()
        };
        assert_eq!(
            name(AdvisoryKey::Two(-3, 9), "db", &[first], &Hashes::new()).as_deref(),
            Some("jobs")
        );
        assert_eq!(name(AdvisoryKey::One(1), "db", &[], &Hashes::new()), None);
    }

    #[test]
    fn migration_tools_are_known_by_the_name_of_the_database() {
        // Keys computed by the rule of each tool for one database.
        let rails = RAILS_SALT * i64::from(crc32(b"orders"));
        assert_eq!(
            name(AdvisoryKey::One(rails), "orders", &[], &Hashes::new()).as_deref(),
            Some("Rails migrations")
        );
        assert_eq!(name(AdvisoryKey::One(rails), "other", &[], &Hashes::new()), None);
        assert_eq!(
            name(AdvisoryKey::One(FLYWAY - 5), "x", &[], &Hashes::new()).as_deref(),
            Some("Flyway migrations")
        );
    }
}
