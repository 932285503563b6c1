//! Forced unlock: one script compares what the key holds with what was seen and deletes it, or does nothing. For
//! Redisson it wakes the waiters in the same script, as its own unlock does.
//!
//! A raw value is its owner's secret: only a SHA-1 goes into the script, never the value, so that neither SLOWLOG nor
//! MONITOR shows it. Redis has no better digest. It is taken behind a random salt of each act: of two values that were made
//! to have one SHA-1, each has another one behind it.

use ::redis::{Cmd, Value};
use domain::generation::Generation;
use domain::hex;
use domain::known::Known;
use domain::names::{OwnerId, Resource, Source};
use domain::observation::{Condition, ObservedLock};
use domain::release::{BlastRadius, Release};
use sha1_smol::Sha1;

use super::fingerprint::Fingerprint;
use super::limits::VALUE_BYTES_MAX;
use super::link::Line;
use super::odd::small_hash;
use super::page::{beginning, on_key};
use super::redisson::RedissonLock;
use super::server_info::text;
use super::{RedisBackend, fault, named};
use crate::backends::BackendError;
use crate::backends::release::{Acted, settle};

pub(super) const HOW: &str =
    "a script deletes the key if it still holds the value seen; Redisson's waiters are woken";
pub(super) const NO_ACCOUNT: &str =
    "no `unlock_url` is configured; docs/backends/redis.md has the account to create";
const MEND: &str = "docs/backends/redis.md has the whole ACL SETUSER line of this account.";

/// Compares type, length and salted SHA-1, then deletes.
const STRING: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= 'string' then return 0 end
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
if redis.sha1hex(ARGV[3] .. redis.call('GETRANGE', KEYS[1], 0, -1)) ~= ARGV[2] then return 0 end
return redis.call('DEL', KEYS[1])";

/// Compares the mode and the set of fields, not their counts; wakes the waiters of a lock, of a read-write lock
/// (all of them, if it was the writer's) and of a fair lock. Publishing comes first: a refusal of it then leaves the
/// lock as it was, and nobody hears anything before the script is done.
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

/// Only the key goes; with a read lock, everyone who shares it.
pub(super) fn radius(lock: &ObservedLock, owners: &[OwnerId]) -> Known<BlastRadius> {
    if let Some(Condition::Unrecognised { why }) = &lock.condition {
        return Known::Unknown(why.clone());
    }
    let mut radius = BlastRadius::default();
    for owner in owners.iter().skip(1) {
        radius.add_lock(
            format!("the same lock as {owner} holds it"),
            Some(lock.resource.clone()),
        );
    }
    radius.warn("Redis does not tell the holder: it goes on until it looks at its key.");
    radius.warn(if lock.source.as_str() == "hash" {
        "Redisson's hash looks the same when the same thread takes the lock again."
    } else if lock.lease_id.is_known() {
        "A holder is told by its value alone, with the lease id in it."
    } else {
        "A holder is told by its value alone: should the next one write the same value, the two cannot be told apart."
    });
    Known::Known(radius)
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
    if !named::is_ours(backend, resource) {
        return Ok(Release::refused(
            "the key fits none of the configured patterns",
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
    settle(backend, source, resource, wanted, acted).await
}

/// The script for the holding that was named; none when the key holds something else.
async fn string_script(line: &Line, key: &[u8], wanted: &Generation) -> Result<Option<Cmd>, BackendError> {
    if !is_of_type(line, key, "string").await? {
        return Ok(None);
    }
    let Value::Int(bytes) = line.ask(&on_key("STRLEN", key)).await? else {
        return Err(fault::unexpected("STRLEN"));
    };
    if usize::try_from(bytes).is_ok_and(|bytes| bytes > VALUE_BYTES_MAX) {
        return Ok(None);
    }
    let Value::BulkString(value) = line.ask(&beginning(key, VALUE_BYTES_MAX)).await? else {
        return Ok(None);
    };
    if Fingerprint::of(&value).generation("value:") != wanted.as_str() {
        return Ok(None);
    }
    let salt = hex::text(&rand::random::<[u8; 16]>());
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

async fn hash_script(line: &Line, key: &[u8], wanted: &Generation) -> Result<Option<Cmd>, BackendError> {
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
        .arg(beside("redisson_lock__channel", key))
        .arg(beside("redisson_rwlock", key))
        // Not declared as a key: EVAL wants to write to those, and this one is only read.
        .arg(beside("redisson_lock_queue", key));
    for (field, _) in &lock.holds {
        script.arg(field);
    }
    Ok(Some(script))
}

async fn is_of_type(line: &Line, key: &[u8], kind: &str) -> Result<bool, BackendError> {
    Ok(text(&line.ask(&on_key("TYPE", key)).await?) == Some(kind))
}

/// How Redisson calls what belongs to a lock: in braces, so that a cluster keeps it beside the lock, unless the name
/// has braces of its own.
fn beside(what: &str, key: &[u8]) -> Vec<u8> {
    let (open, close): (&[u8], &[u8]) = if key.contains(&b'{') {
        (b":", b"")
    } else {
        (b":{", b"}")
    };
    [what.as_bytes(), open, key, close].concat()
}

async fn act(line: &Line, script: &Cmd) -> Acted {
    match line.raw(script).await {
        Ok(Value::Int(1)) => Acted::Done,
        Ok(Value::Int(0)) => Acted::Missed,
        Ok(_) => Acted::unanswered(&fault::unexpected("EVAL")),
        Err(error) if error.detail().is_some_and(is_refusal_in_script) => {
            denied(error.detail().unwrap_or_default().to_owned())
        }
        Err(error) if fault::is_answer(&error) => match fault::mapped(&error, line.timeout()) {
            BackendError::Denied { detail, .. } => denied(detail),
            other => Acted::Refused {
                why: other.to_string(),
                mend: mend_of(error.code()).to_owned(),
            },
        },
        Err(error) => Acted::unanswered(&fault::mapped(&error, line.timeout())),
    }
}

/// Inside a script Redis says so in words alone: those of 7.0, and of 7.2 and later.
fn is_refusal_in_script(text: &str) -> bool {
    text.contains("user executing the script can't") || text.contains("ACL failure in script")
}

fn denied(detail: String) -> Acted {
    Acted::Refused {
        why: format!("Redis refused the account of forced unlocks: {detail}"),
        mend: MEND.to_owned(),
    }
}

fn mend_of(code: Option<&str>) -> &'static str {
    match code {
        Some("READONLY") => "Point `unlock_url` at the master: this server is a replica.",
        _ => "Mend what the server says, then try again.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_act_has_a_digest_of_its_own() {
        // SHA-1 of "abc" is in FIPS 180; a salt in front changes it.
        let plain = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(salted_sha1("", b"abc"), plain);
        assert_eq!(salted_sha1("a", b"bc"), plain);
        assert_ne!(salted_sha1("0f", b"abc"), salted_sha1("f0", b"abc"));
    }

    #[test]
    fn what_belongs_to_a_redisson_lock_is_named_as_redisson_does() {
        // With and without braces in the lock's own name.
        assert_eq!(
            beside("redisson_lock__channel", b"lock:a"),
            b"redisson_lock__channel:{lock:a}"
        );
        assert_eq!(
            beside("redisson_rwlock", b"lock:{a}"),
            b"redisson_rwlock:lock:{a}"
        );
    }
}
