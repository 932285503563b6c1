//! Reads hashes and sorted sets as the locks of Redisson and Symfony: number of elements and memory first, because reading a
//! large one would block the server.

use ::redis::{Cmd, Pipeline, ServerError, Value};

use super::connection::RedisConnection;
use super::error;
use super::limits::{HASH_BYTES_MAX, HASH_FIELDS_MAX};
use super::non_string_keys::{Sized, groups};
use super::page::{Page, RedisKey, is_refusal, is_refusal_of_command, is_wrong_type, on_key, refuse_key};
use super::redirect::Redirect;
use super::redisson::RedissonLock;
use super::rows::Rows;
use super::symfony::SymfonyLock;
use crate::BackendError;
use domain::observation::ObservedLock;

/// Elements that MEMORY USAGE samples: all of a readable collection.
const SAMPLES: i64 = HASH_FIELDS_MAX;

/// Names and values, or members and scores.
pub(super) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Types of keys that hold pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Collection {
    Hash,
    SortedSet,
}

impl Collection {
    /// As TYPE answers.
    pub(super) fn from_type(kind: &str) -> Option<Self> {
        match kind {
            "hash" => Some(Self::Hash),
            "zset" => Some(Self::SortedSet),
            _ => None,
        }
    }

    /// Its type in words, and the word for its elements.
    const fn nouns(self) -> (&'static str, &'static str) {
        match self {
            Self::Hash => ("hash", "fields"),
            Self::SortedSet => ("sorted set (zset)", "members"),
        }
    }

    const fn count(self) -> &'static str {
        match self {
            Self::Hash => "HLEN",
            Self::SortedSet => "ZCARD",
        }
    }

    const fn read(self) -> &'static str {
        match self {
            Self::Hash => "HGETALL",
            Self::SortedSet => "ZRANGE",
        }
    }

    /// Content and time left. The time of a hash is read first: if the key changes its owner in between, the shorter time is
    /// shown. That of a sorted set is read last: a refresh in between hides no member then.
    fn read_all(self, key: &[u8]) -> [Cmd; 2] {
        let time = on_key("PTTL", key);
        let mut content = on_key(self.read(), key);
        match self {
            Self::Hash => [time, content],
            Self::SortedSet => {
                content.arg(0).arg(-1).arg("WITHSCORES");
                [content, time]
            }
        }
    }

    /// Time left, in milliseconds, and content of the answers to [`read_all`](Self::read_all).
    fn answers(self, answers: &mut impl Iterator<Item = Value>) -> Result<(i64, Value), BackendError> {
        let replies = (answers.next(), answers.next());
        let (time, content) = match self {
            Self::Hash => replies,
            Self::SortedSet => (replies.1, replies.0),
        };
        match (time, content) {
            (Some(Value::Int(pttl_ms)), Some(content)) => Ok((pttl_ms, content)),
            _ => Err(error::unexpected("PTTL")),
        }
    }

    /// Its lock; otherwise a row that says so.
    fn row(self, rows: &Rows, key: &[u8], pttl_ms: i64, pairs: &Pairs) -> ObservedLock {
        match self {
            Self::Hash => match RedissonLock::parse(pairs) {
                Some(lock) => rows.redisson(key, pttl_ms, &lock),
                None => rows.unrecognised(key, "The key is a hash, but not one of Redisson's locks"),
            },
            Self::SortedSet => match SymfonyLock::parse(pairs, pttl_ms) {
                Some(lock) => rows.symfony(key, pttl_ms, &lock),
                None => rows.unrecognised(key, "The key is a zset, but not one of Symfony's locks"),
            },
        }
    }
}

/// Adds a row for each existing key.
pub(super) async fn read(
    connection: &RedisConnection,
    rows: &Rows,
    keys: Vec<(RedisKey, Collection)>,
    page: &mut Page,
) -> Result<(), BackendError> {
    for group in groups(small_ones(connection, rows, keys, page).await?) {
        let mut commands = Pipeline::with_capacity(2 * group.len());
        for Sized { key: (key, kind), .. } in &group {
            for command in kind.read_all(key) {
                commands.add_command(command);
            }
        }
        let mut answers = connection.query_all(&commands).await?.into_iter();
        for Sized {
            key: (key, kind),
            bytes,
        } in group
        {
            let (pttl_ms, content) = kind.answers(&mut answers)?;
            match content {
                _ if pttl_ms == -2 => {}
                Value::ServerError(error) => refused(rows, (&key, kind), &error, kind.read(), page)?,
                Value::Array(flat) if flat.contains(&Value::Nil) => {
                    page.locks
                        .push(rows.large_collection(&key, kind.nouns().0, bytes));
                }
                other => {
                    let pairs = pairs(other).ok_or_else(|| error::unexpected(kind.read()))?;
                    if !pairs.is_empty() {
                        page.locks.push(kind.row(rows, &key, pttl_ms, &pairs));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Keeps those of few elements and little memory; the others become rows.
async fn small_ones(
    connection: &RedisConnection,
    rows: &Rows,
    keys: Vec<(RedisKey, Collection)>,
    page: &mut Page,
) -> Result<Vec<Sized<(RedisKey, Collection)>>, BackendError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut commands = Pipeline::with_capacity(2 * keys.len());
    for (key, kind) in &keys {
        commands.add_command(on_key(kind.count(), key));
        commands.add_command(memory_usage(key));
    }
    let mut answers = connection.query_all(&commands).await?.into_iter();
    let mut small = Vec::with_capacity(keys.len());
    for (key, kind) in keys {
        let (Some(count), Some(bytes)) = (answers.next(), answers.next()) else {
            return Err(error::unexpected(kind.count()));
        };
        let (noun, elements) = kind.nouns();
        match (count, bytes) {
            (Value::ServerError(error), _) => refused(rows, (&key, kind), &error, kind.count(), page)?,
            (Value::Int(count), _) if count > HASH_FIELDS_MAX => {
                let why =
                    format!("The key is a {noun} of {count} {elements}, which is not a known lock type");
                page.locks.push(rows.unrecognised(&key, why));
            }
            (Value::Int(_), Value::ServerError(error)) => {
                refused(rows, (&key, kind), &error, "MEMORY|USAGE", page)?;
            }
            (Value::Int(_), Value::Int(bytes)) => match bytes.unsigned_abs() {
                bytes @ ..=HASH_BYTES_MAX => small.push(Sized {
                    key: (key, kind),
                    bytes,
                }),
                bytes => page.locks.push(rows.large_collection(&key, noun, bytes)),
            },
            (Value::Int(_), Value::Nil) => {}
            _ => return Err(error::unexpected("MEMORY USAGE")),
        }
    }
    Ok(small)
}

/// Row of a key for which `command` was refused.
fn refused(
    rows: &Rows,
    (key, kind): (&[u8], Collection),
    error: &ServerError,
    command: &'static str,
    page: &mut Page,
) -> Result<(), BackendError> {
    if is_refusal_of_command(error) {
        page.troubles.refuse_command(command, key);
        let noun = kind.nouns().0;
        let why = format!("The key is a {noun} that this account may not read ({command})");
        page.locks.push(rows.unrecognised(key, why));
    } else if is_refusal(error) || Redirect::from_server(error).is_some() {
        refuse_key(rows, key, error, page)?;
    } else if !is_wrong_type(error) {
        return Err(error::refused(error));
    }
    // Its type has changed; the next scan reads it.
    Ok(())
}

fn memory_usage(key: &[u8]) -> Cmd {
    let mut cmd = ::redis::cmd("MEMORY");
    cmd.arg("USAGE").arg(key).arg("SAMPLES").arg(SAMPLES);
    cmd
}

/// The content of one key, read alone, with the time left of a sorted set in milliseconds; `None` if it has another type, or is
/// too large to be a lock.
pub(super) async fn read_collection(
    connection: &RedisConnection,
    key: &[u8],
    kind: Collection,
) -> Result<Option<(Pairs, i64)>, BackendError> {
    match connection.query(&on_key(kind.count(), key)).await? {
        Value::Int(0..=HASH_FIELDS_MAX) => {}
        _ => return Ok(None),
    }
    match connection.query(&memory_usage(key)).await? {
        Value::Int(bytes) if bytes.unsigned_abs() <= HASH_BYTES_MAX => {}
        _ => return Ok(None),
    }
    let [first, second] = kind.read_all(key);
    // The account of forced unlocks needs no right to read times for the locks of Redisson.
    let (pttl_ms, content) = match kind {
        Collection::Hash => (0, connection.query(&second).await?),
        Collection::SortedSet => {
            let mut commands = Pipeline::with_capacity(2);
            commands.add_command(first).add_command(second);
            kind.answers(&mut connection.query_all(&commands).await?.into_iter())?
        }
    };
    Ok(pairs(content).map(|pairs| (pairs, pttl_ms)))
}

/// Names and values alternate. `None` if one of them exceeded the limit.
fn pairs(answer: Value) -> Option<Pairs> {
    let Value::Array(flat) = answer else { return None };
    let mut flat = flat.into_iter();
    let mut pairs = Vec::with_capacity(flat.len() / 2);
    while let Some(name) = flat.next() {
        match (name, flat.next()?) {
            (Value::BulkString(name), Value::BulkString(value)) => pairs.push((name, value)),
            _ => return None,
        }
    }
    Some(pairs)
}
