//! Problems of a scan that did not end it, and their text on the Backends page.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use domain::format;
use domain::limits::RESOURCE_BYTES_MAX;
use domain::observation::Coverage;

use super::limits::REPLY_BYTES_MAX;
use super::page::RedisKey;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Troubles {
    /// Keys that this account may not read.
    refused_keys: u64,
    /// Required commands that this account may not run.
    refused_commands: BTreeSet<&'static str>,
    /// Keys that were not read for either reason.
    unread: HashSet<RedisKey>,
    long_names: u64,
    /// The strings of one reply filled it, so that shorter names may be missing too.
    has_full_reply: bool,
}

impl Troubles {
    /// Counts a key with a too long name; returns false, for `retain`.
    pub(super) fn long_name(&mut self) -> bool {
        self.long_names += 1;
        false
    }

    /// Counts a key that was not read, because this account may not read it.
    pub(super) fn refuse_key(&mut self, key: &[u8]) {
        self.refused_keys += 1;
        self.unread.insert(key.to_vec());
    }

    /// Records a key that was not read, because `command` was refused.
    pub(super) fn refuse_command(&mut self, command: &'static str, key: &[u8]) {
        self.refused_commands.insert(command);
        self.unread.insert(key.to_vec());
    }

    /// Counts names that one reply left out: too long, or, if it `is_full`, perhaps shorter.
    pub(super) fn omitted_names(&mut self, count: u64, is_full: bool) {
        self.long_names += count;
        self.has_full_reply |= count > 0 && is_full;
    }

    /// Whether only names that no lock can have are missing.
    pub(super) const fn lists_every_lock(&self) -> bool {
        !self.has_full_reply
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.refused_keys += other.refused_keys;
        self.refused_commands.extend(other.refused_commands);
        self.unread.extend(other.unread);
        self.long_names += other.long_names;
        self.has_full_reply |= other.has_full_reply;
    }

    /// Coverage of a scan over all keys. Keys with too long names are missing; all others are
    /// rows.
    pub(super) fn coverage(&self, seen: u64) -> Coverage {
        if self.long_names == 0 {
            return Coverage::Complete;
        }
        let why = format!(
            "{} keys have names of more than {RESOURCE_BYTES_MAX} bytes, or of {} together in one SCAN",
            self.long_names,
            format::bytes(REPLY_BYTES_MAX)
        );
        Coverage::Partial {
            seen,
            of: Some(seen + self.long_names),
            why: Cow::Owned(why),
        }
    }

    /// Names of the keys that were not read. Each has a row of one source and may be a lock of another.
    pub(super) const fn unread(&self) -> &HashSet<RedisKey> {
        &self.unread
    }

    /// Whether a key that was not read may be a hash.
    pub(super) fn hide_hashes(&self) -> bool {
        let mut commands = self.refused_commands.iter();
        self.refused_keys > 0 || commands.any(|command| !is_of_sorted_sets(command))
    }

    /// Whether a key that was not read may be a sorted set.
    pub(super) fn hide_sorted_sets(&self) -> bool {
        let mut commands = self.refused_commands.iter();
        self.refused_keys > 0 || commands.any(|command| !command.starts_with('H'))
    }

    /// Coverage of a source whose locks may be among the keys that were not read.
    pub(super) fn hidden_coverage(&self, seen: u64) -> Coverage {
        let unread = self.unread.len() as u64;
        let keys = format::counted(unread, "key", "keys");
        Coverage::Partial {
            seen: seen.saturating_sub(unread),
            of: Some(seen),
            why: Cow::Owned(format!(
                "this account may not read {keys} that may be locks of this kind"
            )),
        }
    }

    /// For the source of strings.
    pub(super) fn of_keys(&self) -> Option<String> {
        (self.refused_keys > 0).then(|| {
            format!(
                "{} keys fit the patterns, but this account may not read them: grant them with ACL SETUSER … %R~pattern, \
                 or narrow `patterns`",
                self.refused_keys
            )
        })
    }

    /// For the source of hashes.
    pub(super) fn of_hashes(&self) -> Option<String> {
        missing_grants(
            self.refused_commands
                .iter()
                .filter(|command| !is_of_sorted_sets(command)),
        )
    }

    /// For the source of sorted sets.
    pub(super) fn of_sorted_sets(&self) -> Option<String> {
        missing_grants(
            self.refused_commands
                .iter()
                .filter(|command| is_of_sorted_sets(command)),
        )
    }
}

fn is_of_sorted_sets(command: &str) -> bool {
    command.starts_with('Z')
}

fn missing_grants<'a>(commands: impl Iterator<Item = &'a &'static str>) -> Option<String> {
    let commands: Vec<&str> = commands.copied().collect();
    (!commands.is_empty()).then(|| {
        let grants: Vec<String> = commands
            .iter()
            .map(|command| format!("+{}", command.to_lowercase()))
            .collect();
        format!(
            "This account may not run {}, so some keys cannot be read: ACL SETUSER … {}",
            commands.join(", "),
            grants.join(" ")
        )
    })
}
