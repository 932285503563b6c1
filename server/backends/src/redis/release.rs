//! Forced unlock: one script compares the key's content with the observed one and deletes it,
//! or does nothing. For Redisson it wakes the waiters in the same script, as Redisson's unlock
//! does.
//!
//! A raw value is its owner's secret: the script receives only a SHA-1, so that neither SLOWLOG
//! nor MONITOR shows the value. Redis has no better digest. A random salt per release precedes
//! the value, so that a prepared SHA-1 collision does not match.

use ::redis::{Cmd, Value};
use domain::force_release::{BlastRadius, Release};
use domain::generation::Generation;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{ObservedCondition, ObservedLock};
use domain::reported::Reported;
use sha1_smol::Sha1;

use super::connection::RedisConnection;
use super::fingerprint::Fingerprint;
use super::limits::VALUE_BYTES_MAX;
use super::non_string_keys::small_hash;
use super::page::{beginning, on_key};
use super::redisson::RedissonLock;
use super::server_info::text;
use super::{RedisBackend, error, lookup};
use crate::BackendError;
use crate::release::{Acted, confirm_release};

pub(super) const HOW: &str =
    "a script deletes the key if it still holds the value seen; Redisson's waiters are woken";
pub(super) const NO_ACCOUNT: &str =
    "no `unlock_url` is configured; docs/backends/redis.md has the account to create";
const REMEDY: &str = "docs/backends/redis.md has the whole ACL SETUSER line of this account.";

/// Compares type, length and salted SHA-1, then deletes.
const STRING: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return 0 end
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
if redis.sha1hex(ARGV[3] .. redis.call('GETRANGE', KEYS[1], 0, -1)) ~= ARGV[2] then return 0 end
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

/// Only the key is deleted; for a read lock, for all sharers.
pub(super) fn radius(lock: &ObservedLock, owners: &[OwnerId]) -> Reported<BlastRadius> {
    if let Some(ObservedCondition::Unrecognised { why }) = &lock.condition {
        return Reported::Unknown(why.clone());
    }
    let mut radius = BlastRadius::default();
    for owner in owners.iter().skip(1) {
        radius.add_lock(
            format!("the same lock as {owner} holds it"),
            Some(lock.resource.clone()),
        );
    }
    radius.warn("Redis does not notify the holder: it continues until it reads its key.");
    radius.warn(if lock.source.as_str() == "hash" {
        "Redisson's hash looks the same when the same thread acquires the lock again."
    } else if lock.lease_id.is_known() {
        "A holder is identified by its value alone, which contains the lease id."
    } else {
        "A holder is identified by its value alone: a next holder with the same value cannot be distinguished."
    });
    Reported::Value(radius)
}

pub(super) async fn release(
    backend: &RedisBackend,
    source: &Source,
    resource: &Resource,
    wanted: &Generation,
) -> Result<Release, BackendError> {
    let Some(unlocks) = &backend.unlocks else {
        return Ok(Release::refused(NO_ACCOUNT, "Set `unlock_url`."));
    };
    if !lookup::is_ours(backend, resource) {
        return Ok(Release::refused(
            "the key matches no configured pattern",
            "Add its pattern to `patterns`.",
        ));
    }
    let line = unlocks.line().await?;
    let key = resource.as_bytes();
    let script = if *source == backend.rows.hash {
        hash_script(&line, key, wanted).await
    } else {
        string_script(&line, key, wanted).await
    };
    let acted = match script {
        Ok(Some(script)) => act(&line, &script).await,
        Ok(None) => Acted::Missed,
        Err(BackendError::Denied { detail, .. }) => denied(detail),
        Err(error) => {
            unlocks.discard(&line).await;
            return Err(error);
        }
    };
    if matches!(acted, Acted::Unknown { .. }) {
        unlocks.discard(&line).await;
    }
    confirm_release(backend, source, resource, wanted, acted).await
}

/// The script for the named holding; `None` if the key's content differs.
async fn string_script(
    line: &RedisConnection,
    key: &[u8],
    wanted: &Generation,
) -> Result<Option<Cmd>, BackendError> {
    if !is_of_type(line, key, "string").await? {
        return Ok(None);
    }
    let Value::Int(bytes) = line.query(&on_key("STRLEN", key)).await? else {
        return Err(error::unexpected("STRLEN"));
    };
    if usize::try_from(bytes).is_ok_and(|bytes| bytes > VALUE_BYTES_MAX) {
        return Ok(None);
    }
    let Value::BulkString(value) = line.query(&beginning(key, VALUE_BYTES_MAX)).await? else {
        return Ok(None);
    };
    if Fingerprint::from_value(&value).generation("value:") != wanted.as_str() {
        return Ok(None);
    }
    let salt = runtime::random::id();
    let mut script = ::redis::cmd("EVAL");
    script
        .arg(STRING)
        .arg(1)
        .arg(key)
        .arg(value.len())
        .arg(salted_sha1(&salt, &value))
        .arg(&salt);
    Ok(Some(script))
}

fn salted_sha1(salt: &str, value: &[u8]) -> String {
    let mut digest = Sha1::new();
    digest.update(salt.as_bytes());
    digest.update(value);
    digest.digest().to_string()
}

async fn hash_script(
    line: &RedisConnection,
    key: &[u8],
    wanted: &Generation,
) -> Result<Option<Cmd>, BackendError> {
    if !is_of_type(line, key, "hash").await? {
        return Ok(None);
    }
    let Some(read) = small_hash(line, key).await? else {
        return Ok(None);
    };
    let Some(lock) = RedissonLock::parse(&read).filter(|lock| lock.generation() == wanted.as_str()) else {
        return Ok(None);
    };
    let mut script = ::redis::cmd("EVAL");
    script
        .arg(HASH)
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

async fn is_of_type(line: &RedisConnection, key: &[u8], kind: &str) -> Result<bool, BackendError> {
    Ok(text(&line.query(&on_key("TYPE", key)).await?) == Some(kind))
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

async fn act(line: &RedisConnection, script: &Cmd) -> Acted {
    match line.raw(script).await {
        Ok(Value::Int(1)) => Acted::Done,
        Ok(Value::Int(0)) => Acted::Missed,
        Ok(_) => Acted::unanswered(&error::unexpected("EVAL")),
        Err(error) if error.detail().is_some_and(is_refusal_in_script) => {
            denied(error.detail().unwrap_or_default().to_owned())
        }
        Err(error) if error::is_answer(&error) => match error::mapped(&error, line.timeout()) {
            BackendError::Denied { detail, .. } => denied(detail),
            other => Acted::Refused {
                why: other.to_string(),
                remedy: remedy_of(error.code()).to_owned(),
            },
        },
        Err(error) => Acted::unanswered(&error::mapped(&error, line.timeout())),
    }
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

fn remedy_of(code: Option<&str>) -> &'static str {
    match code {
        Some("READONLY") => "Point `unlock_url` at the master: this server is a replica.",
        _ => "Fix the error that the server reported, then try again.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_release_has_its_own_salted_digest() {
        // SHA-1 of "abc" is in FIPS 180; a salt changes it.
        let plain = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(salted_sha1("", b"abc"), plain);
        assert_eq!(salted_sha1("a", b"bc"), plain);
        assert_ne!(salted_sha1("0f", b"abc"), salted_sha1("f0", b"abc"));
    }

    #[test]
    fn related_redisson_keys_have_redisson_names() {
        // With and without braces in the lock's own name.
        assert_eq!(
            related_key("redisson_lock__channel", b"lock:a"),
            b"redisson_lock__channel:{lock:a}"
        );
        assert_eq!(
            related_key("redisson_rwlock", b"lock:{a}"),
            b"redisson_rwlock:lock:{a}"
        );
    }
}
