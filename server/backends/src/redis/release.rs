//! Forced unlock: one script compares the key's content with the observed one and deletes it,
//! or does nothing. For Redisson it wakes the waiters in the same script, as Redisson's unlock
//! does.
//!
//! A raw value is its owner's secret: the script receives only a SHA-1, so that neither SLOWLOG
//! nor MONITOR shows the value. Redis has no better digest. A random salt per release precedes
//! the value, so that a prepared SHA-1 collision does not match.

mod blast_radius;

use ::redis::{Cmd, Value};
use config::redis::RedisWake;
use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use sha1_smol::Sha1;

use super::collections::{Collection, Pairs, read_collection};
use super::connection::{Link, RedisConnection};
use super::fingerprint::Fingerprint;
use super::limits::VALUE_BYTES_MAX;
use super::page::{beginning, on_key};
use super::redirect::Redirect;
use super::redisson::RedissonLock;
use super::server_info::text;
use super::settings::Settings;
use super::symfony::SymfonyLock;
use super::waiter_signals;
use super::{RedisBackend, error};
use crate::BackendError;
use crate::release::{Acted, confirm_release, explain_unlock_account};

pub(super) use blast_radius::radius;

pub(super) const HOW: &str =
    "a script deletes the key if it still holds the value seen; Redisson's waiters are woken";
pub(super) const NO_ACCOUNT: &str =
    "neither `unlock_user` nor `unlock_url` is configured; docs/backends/redis.md has the account to create";
pub(super) const NO_ACCOUNT_REMEDY: &str = "Set `unlock_user`.";
const REMEDY: &str = "docs/backends/redis.md has the whole ACL SETUSER line of this account.";

const LOGIN_REMEDY: &str = "Check `unlock_user` and `unlock_password`, or `unlock_url`; docs/backends/redis.md has the whole ACL \
                            SETUSER line of this account.";

/// Answer of [`IS_MASTER`].
const NO_MASTER: i64 = -1;

/// A demoted server refuses writes only where `replica-read-only` is on.
const IS_MASTER: &str = "
if not string.find(redis.call('INFO', 'replication'), 'role:master', 1, true) then return -1 end";

/// Compares type, length and salted SHA-1, then deletes.
const STRING: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return 0 end
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
if redis.sha1hex(ARGV[3] .. redis.call('GETRANGE', KEYS[1], 0, -1)) ~= ARGV[2] then return 0 end";
const DELETE: &str = "
return redis.call('DEL', KEYS[1])";

/// Compares the mode and the set of fields, not their counts; wakes the waiters of a lock, of a
/// read-write lock (all of them for a writer) and of a fair lock. Publishes first: a refused
/// publish then leaves the lock unchanged, and no subscriber runs before the script ends.
const HASH: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return 0 end
local known = #ARGV - 4
if ARGV[1] ~= '' then
  if redis.call('HGET', KEYS[1], 'mode') ~= ARGV[1] then return 0 end
  known = known + 1
end
if redis.call('HLEN', KEYS[1]) ~= known then return 0 end
for i = 5, #ARGV do
  if redis.call('HEXISTS', KEYS[1], ARGV[i]) == 0 then return 0 end
end
if ARGV[1] == 'write' then
  redis.call('PUBLISH', ARGV[3], '1')
elseif ARGV[1] == 'read' then
  redis.call('PUBLISH', ARGV[3], '0')
else
  redis.call('PUBLISH', ARGV[2], '0')
  for _, waiter in ipairs(redis.call('LRANGE', ARGV[4], 0, 999)) do
    redis.call('PUBLISH', ARGV[2] .. ':' .. waiter, '0')
  end
end
return redis.call('DEL', KEYS[1])";

/// Compares number and salted SHA-1 of all members with their scores, then deletes. Symfony's waiters poll.
const SORTED_SET: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then return 0 end
if redis.call('ZCARD', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
local now = table.concat(redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES'), ' ')
if redis.sha1hex(ARGV[3] .. now) ~= ARGV[2] then return 0 end";
/// Readings of a sorted set that its holder refreshes between each reading and its script.
const REFRESHES_MAX: u32 = 3;

/// On a single server. `guard` is checked inside the script.
pub(super) async fn release(
    backend: &RedisBackend,
    link: Option<&Link>,
    guard: Guard,
    (source, resource): (&Source, &Resource),
    expected: &Generation,
) -> Result<Release, BackendError> {
    let link = match may_release(&backend.settings, link, resource) {
        Ok(link) => link,
        Err(refused) => return Ok(refused),
    };
    let connection = link.connection().await.map_err(unlock_account)?;
    let (key, wake) = (resource.as_bytes(), backend.settings.wake);
    let acted = delete_if_same(&connection, key, expected, (guard, wake)).await;
    if matches!(acted, Ok(Attempt::Acted(Acted::Unknown { .. })) | Err(_)) {
        link.discard(&connection).await;
    }
    confirm_release(backend, source, resource, expected, acted?.or_moved()).await
}

/// The link for forced unlocks of a key, or why it is missing.
pub(super) fn may_release<'a>(
    settings: &Settings,
    link: Option<&'a Link>,
    resource: &Resource,
) -> Result<&'a Link, Release> {
    let Some(link) = link else {
        return Err(Release::refused(NO_ACCOUNT, NO_ACCOUNT_REMEDY));
    };
    if !settings.is_ours(resource) {
        return Err(Release::refused(
            "the key matches no configured pattern",
            "Add its pattern to `patterns`.",
        ));
    }
    Ok(link)
}

/// The account for forced unlocks could not connect.
pub(super) fn unlock_account(error: BackendError) -> BackendError {
    explain_unlock_account(error, LOGIN_REMEDY)
}

/// A condition of the script besides the key's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guard {
    None,
    /// The server must be a master at that moment: behind Sentinels it may have been demoted.
    Master,
}

/// Compares and deletes on one server. The prefix of a generation names the type of its key.
///
/// # Errors
/// Nothing was sent that could change the key.
pub(super) async fn delete_if_same(
    connection: &RedisConnection,
    key: &[u8],
    expected: &Generation,
    (guard, wake): (Guard, RedisWake),
) -> Result<Attempt, BackendError> {
    let prefix = expected.as_str().split_once(':').map(|(prefix, _)| prefix);
    let mut attempts = if prefix == Some("zset") { REFRESHES_MAX } else { 1 };
    loop {
        attempts -= 1;
        let script = match (kind_of(connection, key).await, prefix) {
            (Ok(Found::Kind(kind)), Some("value")) if kind == "string" => {
                string_script(connection, key, expected, (guard, wake)).await
            }
            (Ok(Found::Kind(kind)), Some("hash")) if kind == "hash" => {
                hash_script(connection, key, expected, guard).await
            }
            (Ok(Found::Kind(kind)), Some("zset")) if kind == "zset" => {
                sorted_set_script(connection, key, expected, guard).await
            }
            (Ok(Found::Kind(_)), _) => Ok(None),
            (Ok(Found::Moved(to)), _) => return Ok(Attempt::Moved(to)),
            (Err(error), _) => Err(error),
        };
        match script {
            Ok(Some(script)) => match act(connection, &script).await {
                Attempt::Acted(Acted::Missed) if attempts > 0 => {}
                result => return Ok(result),
            },
            Ok(None) => return Ok(Attempt::Acted(Acted::Missed)),
            Err(BackendError::Denied { detail, .. }) => return Ok(Attempt::Acted(denied(detail))),
            Err(error) => return Err(error),
        }
    }
}

/// Result on one server of a cluster.
pub(super) enum Attempt {
    Acted(Acted),
    /// Nothing: another node has the key.
    Moved(Redirect),
}

impl Attempt {
    /// On a server that is no node of a cluster.
    fn or_moved(self) -> Acted {
        match self {
            Self::Acted(acted) => acted,
            Self::Moved(_) => Acted::Refused {
                why: "the server belongs to a cluster".to_owned(),
                remedy: "Set mode = \"cluster\" for this backend.".to_owned(),
            },
        }
    }
}

enum Found {
    /// `none`: there is no key.
    Kind(String),
    Moved(Redirect),
}

async fn kind_of(connection: &RedisConnection, key: &[u8]) -> Result<Found, BackendError> {
    match connection.raw(&on_key("TYPE", key)).await {
        Ok(answer) => text(&answer)
            .map(|kind| Found::Kind(kind.to_owned()))
            .ok_or_else(|| error::unexpected("TYPE")),
        Err(error) => match Redirect::from_client(&error) {
            Some(to) => Ok(Found::Moved(to)),
            None => Err(error::mapped(&error, connection.timeout())),
        },
    }
}

/// Whether the key is there, with whatever value.
pub(super) async fn exists(connection: &RedisConnection, key: &[u8]) -> Result<bool, BackendError> {
    match kind_of(connection, key).await? {
        Found::Kind(kind) => Ok(kind != "none"),
        Found::Moved(_) => Ok(true),
    }
}

/// Precedes a script with its guard.
fn guarded(script: &str, guard: Guard) -> String {
    match guard {
        Guard::None => script.to_owned(),
        Guard::Master => format!("{IS_MASTER}{script}"),
    }
}

/// The script for the named holding; `None` if the key's content differs.
async fn string_script(
    connection: &RedisConnection,
    key: &[u8],
    expected: &Generation,
    (guard, wake): (Guard, RedisWake),
) -> Result<Option<Cmd>, BackendError> {
    let Value::Int(bytes) = connection.query(&on_key("STRLEN", key)).await? else {
        return Err(error::unexpected("STRLEN"));
    };
    if usize::try_from(bytes).is_ok_and(|bytes| bytes > VALUE_BYTES_MAX) {
        return Ok(None);
    }
    let Value::BulkString(value) = connection.query(&beginning(key, VALUE_BYTES_MAX)).await? else {
        return Ok(None);
    };
    if Fingerprint::from_value(&value).generation("value:") != expected.as_str() {
        return Ok(None);
    }
    let salt = runtime::random::id();
    let signal = waiter_signals::signal(wake, key);
    let wake_script = signal.as_ref().map_or("", |signal| signal.script);
    let mut script = ::redis::cmd("EVAL");
    script.arg(guarded(&format!("{STRING}{wake_script}{DELETE}"), guard));
    match signal.and_then(|signal| signal.key) {
        Some(second) => script.arg(2).arg(key).arg(second),
        None => script.arg(1).arg(key),
    };
    script.arg(value.len()).arg(salted_sha1(&salt, &value)).arg(&salt);
    Ok(Some(script))
}

fn salted_sha1(salt: &str, value: &[u8]) -> String {
    let mut digest = Sha1::new();
    digest.update(salt.as_bytes());
    digest.update(value);
    digest.digest().to_string()
}

async fn hash_script(
    connection: &RedisConnection,
    key: &[u8],
    expected: &Generation,
    guard: Guard,
) -> Result<Option<Cmd>, BackendError> {
    let Some((read, _)) = read_collection(connection, key, Collection::Hash).await? else {
        return Ok(None);
    };
    let Some(lock) = RedissonLock::parse(&read).filter(|lock| lock.generation() == expected.as_str()) else {
        return Ok(None);
    };
    let mut script = ::redis::cmd("EVAL");
    script
        .arg(guarded(HASH, guard))
        .arg(1)
        .arg(key)
        .arg(lock.mode.unwrap_or_default())
        .arg(related_key("redisson_lock__channel", key))
        .arg(related_key("redisson_rwlock", key))
        // Not declared as a key: EVAL requires write permission on keys, and this one is only
        // read.
        .arg(related_key("redisson_lock_queue", key));
    for (field, _) in &lock.holds {
        script.arg(field);
    }
    Ok(Some(script))
}

async fn sorted_set_script(
    connection: &RedisConnection,
    key: &[u8],
    expected: &Generation,
    guard: Guard,
) -> Result<Option<Cmd>, BackendError> {
    let Some((read, pttl_ms)) = read_collection(connection, key, Collection::SortedSet).await? else {
        return Ok(None);
    };
    let lock = SymfonyLock::parse(&read, pttl_ms);
    if lock.is_none_or(|lock| lock.generation() != expected.as_str()) {
        return Ok(None);
    }
    let salt = runtime::random::id();
    let mut script = ::redis::cmd("EVAL");
    script
        .arg(guarded(&format!("{SORTED_SET}{DELETE}"), guard))
        .arg(1)
        .arg(key);
    script
        .arg(read.len())
        .arg(salted_sha1(&salt, &joined(&read)))
        .arg(&salt);
    Ok(Some(script))
}

/// As the script joins them.
fn joined(pairs: &Pairs) -> Vec<u8> {
    let parts = pairs
        .iter()
        .flat_map(|(member, score)| [member.as_slice(), score]);
    parts.collect::<Vec<&[u8]>>().join(&b' ')
}

/// Redisson's names for related keys: in braces, so that a cluster stores them with the lock,
/// unless the name has braces of its own.
fn related_key(what: &str, key: &[u8]) -> Vec<u8> {
    let (open, close): (&[u8], &[u8]) = if key.contains(&b'{') {
        (b":", b"")
    } else {
        (b":{", b"}")
    };
    [what.as_bytes(), open, key, close].concat()
}

async fn act(connection: &RedisConnection, script: &Cmd) -> Attempt {
    let answer = connection.raw(script).await;
    if let Some(to) = answer.as_ref().err().and_then(Redirect::from_client) {
        return Attempt::Moved(to);
    }
    Attempt::Acted(match answer {
        Ok(Value::Int(1)) => Acted::Done,
        Ok(Value::Int(0)) => Acted::Missed,
        Ok(Value::Int(NO_MASTER)) => Acted::Refused {
            why: format!(
                "{} is not a master any more; nothing was deleted",
                connection.target().name
            ),
            remedy: "Review the lock again: Leasehold follows the fail-over.".to_owned(),
        },
        Ok(_) => Acted::unanswered(&error::unexpected("EVAL")),
        Err(error) if error.detail().is_some_and(is_refusal_in_script) => {
            denied(error.detail().unwrap_or_default().to_owned())
        }
        Err(error) if error::is_answer(&error) => match error::mapped(&error, connection.timeout()) {
            BackendError::Denied { detail, .. } => denied(detail),
            BackendError::Unavailable { detail, remedy } => Acted::Refused { why: detail, remedy },
            other => Acted::Refused {
                why: other.to_string(),
                remedy: "Fix the error that the server reported, then try again.".to_owned(),
            },
        },
        Err(error) => Acted::unanswered(&error::mapped(&error, connection.timeout())),
    })
}

/// Inside a script Redis reports a refusal as text only: those of 7.0, and of 7.2 and later.
fn is_refusal_in_script(text: &str) -> bool {
    text.contains("user executing the script can't") || text.contains("ACL failure in script")
}

fn denied(detail: String) -> Acted {
    Acted::Refused {
        why: format!("Redis refused the account for forced unlocks: {detail}"),
        remedy: REMEDY.to_owned(),
    }
}

#[cfg(test)]
mod tests;
