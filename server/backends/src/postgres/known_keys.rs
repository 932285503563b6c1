//! Names for advisory keys: from the configuration, by the hashing of lock libraries, and of
//! well-known tools. Two names for one key are shown as ambiguous, never guessed.

mod hashing;
mod well_known;

use std::collections::{BTreeMap, HashMap};

use sqlx::Row;

use super::advisory::AdvisoryKey;
use super::connection::Link;
use super::error::StatementError;
use config::postgres::AdvisoryNameConfig;

/// A name, with how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundName {
    pub(super) name: String,
    pub(super) how: String,
}

/// What is known about a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyName {
    Unknown,
    Known(FoundName),
    /// Several names have this key.
    Ambiguous(Vec<FoundName>),
}

/// The server's `hashtext` and `hashtextextended` of each name.
pub(super) type ServerHashes = HashMap<String, (i32, i64)>;

const HASHES: &str = "SELECT text, hashtext(text), hashtextextended(text, 0) FROM unnest($1::text[]) AS text";

/// Every name that a key may have, by the keys that libraries make of it.
#[derive(Debug, Default)]
pub(super) struct KeyNames {
    configured: Vec<AdvisoryNameConfig>,
    /// What is hashed, with the name to show.
    names: Vec<(String, String)>,
    keys: HashMap<AdvisoryKey, Vec<FoundName>>,
    halves: HashMap<i32, Vec<FoundName>>,
}

impl KeyNames {
    pub(super) fn new(configured: &[AdvisoryNameConfig], names: &[String]) -> Self {
        let fixed = well_known::NAMES.map(|(hashed, shown)| (hashed.to_owned(), shown.to_owned()));
        let names = names.iter().map(|name| (name.clone(), name.clone())).chain(fixed);
        let mut found = Self {
            configured: configured.to_vec(),
            names: names.collect(),
            ..Self::default()
        };
        for (hashed, shown) in &found.names {
            let name = |how: &str| FoundName {
                name: shown.clone(),
                how: how.to_owned(),
            };
            for key in hashing::keys(hashed) {
                found.keys.entry(key.key).or_default().push(name(key.hashing));
            }
            for half in hashing::halves(hashed) {
                found
                    .halves
                    .entry(half.half)
                    .or_default()
                    .push(name(half.hashing));
            }
        }
        found
    }

    /// What the server computes for these names.
    pub(super) async fn server_hashes(&self, link: &mut Link<'_>) -> Result<ServerHashes, StatementError> {
        let texts: Vec<&str> = self.names.iter().map(|(hashed, _)| hashed.as_str()).collect();
        let rows = link.rows(sqlx::query(HASHES).bind(texts)).await?;
        let entries = rows
            .iter()
            .filter_map(|row| Some((row.try_get(0).ok()?, (row.try_get(1).ok()?, row.try_get(2).ok()?))));
        Ok(entries.collect())
    }

    /// A key with a configured number has its configured name, whatever else has that number.
    pub(super) fn find(&self, key: AdvisoryKey, database: &str, server: &ServerHashes) -> KeyName {
        if let Some(found) = self.configured.iter().find_map(|entry| configured(key, entry)) {
            return KeyName::Known(found);
        }
        let mut found = self.keys.get(&key).cloned().unwrap_or_default();
        match key {
            AdvisoryKey::One(key) => found.extend(self.by_server(key, server)),
            AdvisoryKey::Two(first, second) if found.is_empty() => {
                found = self.by_halves(first, second, server);
            }
            AdvisoryKey::Two(..) => {}
        }
        found.extend(well_known::name(key, database).map(|(name, how)| FoundName {
            name: name.to_owned(),
            how: how.to_owned(),
        }));
        merge(found)
    }

    fn by_server<'a>(&'a self, key: i64, server: &'a ServerHashes) -> impl Iterator<Item = FoundName> + 'a {
        self.names.iter().filter_map(move |(hashed, shown)| {
            let (short, long) = *server.get(hashed)?;
            let how = if key == long {
                hashing::HASHTEXTEXTENDED
            } else if key == i64::from(short) {
                hashing::HASHTEXT
            } else {
                return None;
            };
            Some(FoundName {
                name: shown.clone(),
                how: how.to_owned(),
            })
        })
    }

    /// Names of one half: the other half is a number, or has a name too.
    fn by_halves(&self, first: i32, second: i32, server: &ServerHashes) -> Vec<FoundName> {
        let (firsts, seconds) = (self.of_half(first, server), self.of_half(second, server));
        let number = |half: i32| FoundName {
            name: half.to_string(),
            how: "a number".to_owned(),
        };
        let (firsts, seconds) = match (firsts.is_empty(), seconds.is_empty()) {
            (true, true) => return Vec::new(),
            (false, true) => (firsts, vec![number(second)]),
            (true, false) => (vec![number(first)], seconds),
            (false, false) => (firsts, seconds),
        };
        let joined = |first: &FoundName, second: &FoundName| FoundName {
            name: format!("{}, {}", first.name, second.name),
            how: format!("{}, {}", first.how, second.how),
        };
        let pairs = firsts
            .iter()
            .flat_map(|first| seconds.iter().map(move |second| joined(first, second)));
        pairs.collect()
    }

    fn of_half(&self, half: i32, server: &ServerHashes) -> Vec<FoundName> {
        let mut found = self.halves.get(&half).cloned().unwrap_or_default();
        found.extend(self.names.iter().filter_map(|(hashed, shown)| {
            let (short, _) = *server.get(hashed)?;
            (short == half).then(|| FoundName {
                name: shown.clone(),
                how: hashing::HASHTEXT.to_owned(),
            })
        }));
        found
    }
}

fn configured(key: AdvisoryKey, entry: &AdvisoryNameConfig) -> Option<FoundName> {
    let is_key = match key {
        AdvisoryKey::One(key) => entry.key == Some(key),
        AdvisoryKey::Two(first, second) => {
            entry.key1 == Some(first) && entry.key2.is_none_or(|key2| key2 == second)
        }
    };
    is_key.then(|| FoundName {
        name: entry.name.clone(),
        how: "its number, in the configuration".to_owned(),
    })
}

/// One entry per name, with each way to find it.
fn merge(found: Vec<FoundName>) -> KeyName {
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for found in found {
        let ways = by_name.entry(found.name).or_default();
        if !ways.contains(&found.how) {
            ways.push(found.how);
        }
    }
    let mut names: Vec<FoundName> = by_name
        .into_iter()
        .map(|(name, ways)| FoundName {
            name,
            how: ways.join(" or "),
        })
        .collect();
    match names.len() {
        0 => KeyName::Unknown,
        1 => names.pop().map_or(KeyName::Unknown, KeyName::Known),
        _ => KeyName::Ambiguous(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(key: AdvisoryKey, configured: &[AdvisoryNameConfig], names: &[&str]) -> KeyName {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        KeyNames::new(configured, &names).find(key, "db", &ServerHashes::new())
    }

    #[track_caller]
    fn assert_known(found: &KeyName, name: &str, how: &str) {
        let KeyName::Known(found) = found else {
            panic!("{found:?}")
        };
        assert!(found.name == name && found.how.contains(how), "{found:?}");
    }

    const PRISMA: AdvisoryKey = AdvisoryKey::One(72_707_369);

    #[test]
    fn a_configured_number_takes_precedence() {
        // The same key is Prisma's unless the configuration names it; the second number of a pair may be any.
        assert_known(&named(PRISMA, &[], &[]), "Prisma Migrate", "constant");
        let entry = |key, key1| AdvisoryNameConfig {
            key,
            key1,
            key2: None,
            name: "mine".to_owned(),
        };
        assert_known(
            &named(PRISMA, &[entry(Some(72_707_369), None)], &[]),
            "mine",
            "number",
        );
        let key = AdvisoryKey::Two(-3, 9);
        assert_known(&named(key, &[entry(None, Some(-3))], &[]), "mine", "number");
        assert_eq!(named(AdvisoryKey::One(1), &[], &["a"]), KeyName::Unknown);
    }

    #[test]
    fn two_names_with_one_hash_are_ambiguous() {
        // Both have the CRC-32 4ddb0c25.
        let key = AdvisoryKey::One(0x4ddb_0c25);
        assert_known(&named(key, &[], &["plumless"]), "plumless", "Symfony");
        let KeyName::Ambiguous(candidates) = named(key, &[], &["plumless", "buckeroo"]) else {
            panic!("a guess")
        };
        let names: Vec<&str> = candidates.iter().map(|found| found.name.as_str()).collect();
        assert_eq!(names, ["buckeroo", "plumless"]);
        // The same name twice is no collision.
        assert_known(&named(key, &[], &["plumless", "plumless"]), "plumless", "Symfony");
    }

    #[test]
    fn each_half_of_a_pair_may_have_a_name() {
        // CRC-32 of "a" and "b"; a plain number in one of the halves.
        let (a, b) = (0xe8b7_be43_u32.cast_signed(), 0x71be_eff9);
        let names = ["a", "b"];
        assert_known(&named(AdvisoryKey::Two(a, b), &[], &names), "a, b", "crc32");
        assert_known(
            &named(AdvisoryKey::Two(7, b), &[], &names),
            "7, b",
            "a number, crc32",
        );
        assert_known(&named(AdvisoryKey::Two(b, 7), &[], &names), "b, 7", "crc32");
        // A pair that one library makes of one name is that name.
        assert_known(
            &named(AdvisoryKey::Two(b, 0), &[], &names),
            "b",
            "with_advisory_lock",
        );
    }
}
