//! Reads keys that are not short strings, or that changed while they were read: type and size
//! first, then contents, grouped by size.
//!
//! The size of a hash is read first, because reading a large one would block the server.

use ::redis::{Cmd, Pipeline, ServerError, Value};

use super::connection::RedisConnection;
use super::error;
use super::limits::{HASH_BYTES_MAX, HASH_FIELDS_MAX, LONG_READ_BYTES_MAX, VALUE_BYTES_MAX};
use super::page::{
    Page, RedisKey, beginning, is_refusal, is_refusal_of_command, is_wrong_type, on_key, refuse_key,
};
use super::redirect::Redirect;
use super::redisson::RedissonLock;
use super::rows::Rows;
use crate::BackendError;

/// Elements of a hash that MEMORY USAGE samples: all of a readable one.
const SAMPLES: i64 = HASH_FIELDS_MAX;

/// A key whose contents may be read, with their size in bytes.
struct Sized {
    key: RedisKey,
    bytes: u64,
}

/// Adds a row for each existing key.
pub(super) async fn read(
    line: &RedisConnection,
    rows: &Rows,
    keys: Vec<RedisKey>,
    page: &mut Page,
) -> Result<(), BackendError> {
    let mut commands = Pipeline::with_capacity(3 * keys.len());
    for key in &keys {
        commands.add_command(on_key("TYPE", key));
        commands.add_command(on_key("HLEN", key));
        commands.add_command(on_key("STRLEN", key));
    }
    let mut answers = line.query_all(&commands).await?.into_iter();
    let (mut strings, mut hashes) = (Vec::new(), Vec::new());
    for key in keys {
        let (Some(kind), Some(fields), Some(bytes)) = (answers.next(), answers.next(), answers.next()) else {
            return Err(error::unexpected("TYPE"));
        };
        match kind {
            Value::SimpleString(kind) => match kind.as_str() {
                "none" => {}
                "string" => strings.extend(string(rows, key, &bytes, page)),
                "hash" => hashes.extend(hash(rows, key, fields, page)?),
                other => {
                    let why = format!("The key is a {other}, which is not a known lock type");
                    page.locks.push(rows.unrecognised(&key, why));
                }
            },
            Value::ServerError(error) if is_refusal_of_command(&error) => {
                page.troubles.refused_commands.insert("TYPE");
                let why = "The key is not a short string, and this account may not read its type (TYPE)";
                page.locks.push(rows.unrecognised(&key, why));
            }
            Value::ServerError(error) => {
                refuse_key(rows, &key, &error, page)?;
            }
            _ => return Err(error::unexpected("TYPE")),
        }
    }
    read_strings(line, rows, strings, page).await?;
    let hashes = with_sizes(line, rows, hashes, page).await?;
    read_hashes(line, rows, hashes, page).await
}

/// A readable string. One of unknown length is read up to the limit.
fn string(rows: &Rows, key: RedisKey, bytes: &Value, page: &mut Page) -> Option<Sized> {
    let bytes = match bytes {
        Value::Int(bytes) => bytes.unsigned_abs(),
        _ => VALUE_BYTES_MAX as u64,
    };
    if bytes > VALUE_BYTES_MAX as u64 {
        page.locks.push(rows.too_long(&key, Some(bytes)));
        return None;
    }
    Some(Sized { key, bytes })
}

/// A hash with few enough fields.
fn hash(
    rows: &Rows,
    key: RedisKey,
    fields: Value,
    page: &mut Page,
) -> Result<Option<RedisKey>, BackendError> {
    match fields {
        Value::Int(0..=HASH_FIELDS_MAX) => return Ok(Some(key)),
        Value::Int(fields) => {
            let why = format!("The key is a hash of {fields} fields, which is not a known lock type");
            page.locks.push(rows.unrecognised(&key, why));
        }
        Value::ServerError(error) => refused_hash(rows, &key, &error, "HLEN", page)?,
        _ => return Err(error::unexpected("HLEN")),
    }
    Ok(None)
}

/// Row of a hash for which `command` was refused.
fn refused_hash(
    rows: &Rows,
    key: &[u8],
    error: &ServerError,
    command: &'static str,
    page: &mut Page,
) -> Result<(), BackendError> {
    if is_refusal_of_command(error) {
        page.troubles.refused_commands.insert(command);
        let why = format!("The key is a hash that this account may not read ({command})");
        page.locks.push(rows.unrecognised(key, why));
    } else if is_refusal(error) || Redirect::from_server(error).is_some() {
        refuse_key(rows, key, error, page)?;
    }
    // Its type has changed; the next scan reads it.
    Ok(())
}

async fn read_strings(
    line: &RedisConnection,
    rows: &Rows,
    strings: Vec<Sized>,
    page: &mut Page,
) -> Result<(), BackendError> {
    for some in groups(strings) {
        let mut commands = Pipeline::with_capacity(4 * some.len());
        for Sized { key, .. } in &some {
            commands.add_command(on_key("PTTL", key));
            commands.add_command(beginning(key, VALUE_BYTES_MAX));
            commands.add_command(on_key("STRLEN", key));
            commands.add_command(on_key("PTTL", key));
        }
        let mut answers = line.query_all(&commands).await?.into_iter();
        for Sized { key, .. } in some {
            let (Some(before), Some(value), Some(bytes), Some(after)) =
                (answers.next(), answers.next(), answers.next(), answers.next())
            else {
                return Err(error::unexpected("GETRANGE"));
            };
            match (before, value, after) {
                // It was deleted meanwhile: an empty result may be a missing key.
                (Value::Int(-2), _, _) | (_, _, Value::Int(-2)) => {}
                (Value::Int(pttl_ms), Value::BulkString(value), _) => {
                    let bytes = match bytes {
                        Value::Int(bytes) => Some(bytes.unsigned_abs()),
                        _ => None,
                    };
                    let whole = value.len() < VALUE_BYTES_MAX || bytes == Some(VALUE_BYTES_MAX as u64);
                    page.locks.push(if whole {
                        rows.string(&key, pttl_ms, &value)
                    } else {
                        rows.too_long(&key, bytes)
                    });
                }
                // Its type has changed; the next scan reads it.
                (_, Value::ServerError(error), _) if is_wrong_type(&error) => {}
                (Value::ServerError(error), ..) | (_, Value::ServerError(error), _) => {
                    refuse_key(rows, &key, &error, page)?;
                }
                _ => return Err(error::unexpected("GETRANGE")),
            }
        }
    }
    Ok(())
}

/// Keeps hashes that take little memory; the others become rows.
async fn with_sizes(
    line: &RedisConnection,
    rows: &Rows,
    keys: Vec<RedisKey>,
    page: &mut Page,
) -> Result<Vec<Sized>, BackendError> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut commands = Pipeline::with_capacity(keys.len());
    for key in &keys {
        commands.add_command(memory_usage(key));
    }
    let mut small = Vec::with_capacity(keys.len());
    for (key, bytes) in keys.into_iter().zip(line.query_all(&commands).await?) {
        match bytes {
            Value::Int(bytes) if bytes.unsigned_abs() <= HASH_BYTES_MAX => small.push(Sized {
                key,
                bytes: bytes.unsigned_abs(),
            }),
            Value::Int(bytes) => page.locks.push(rows.large_hash(&key, bytes.unsigned_abs())),
            Value::Nil => {}
            Value::ServerError(error) => refused_hash(rows, &key, &error, "MEMORY|USAGE", page)?,
            _ => return Err(error::unexpected("MEMORY USAGE")),
        }
    }
    Ok(small)
}

async fn read_hashes(
    line: &RedisConnection,
    rows: &Rows,
    hashes: Vec<Sized>,
    page: &mut Page,
) -> Result<(), BackendError> {
    for some in groups(hashes) {
        let mut commands = Pipeline::with_capacity(2 * some.len());
        for Sized { key, .. } in &some {
            commands.add_command(on_key("PTTL", key));
            commands.add_command(on_key("HGETALL", key));
        }
        let mut answers = line.query_all(&commands).await?.into_iter();
        for Sized { key, bytes } in some {
            let (Some(Value::Int(pttl_ms)), Some(value)) = (answers.next(), answers.next()) else {
                return Err(error::unexpected("PTTL"));
            };
            match value {
                _ if pttl_ms == -2 => {}
                Value::ServerError(error) => refused_hash(rows, &key, &error, "HGETALL", page)?,
                Value::Array(flat) if flat.contains(&Value::Nil) => {
                    page.locks.push(rows.large_hash(&key, bytes));
                }
                other => {
                    let fields = fields(other).ok_or_else(|| error::unexpected("HGETALL"))?;
                    page.locks.push(match RedissonLock::parse(&fields) {
                        Some(lock) => rows.redisson(&key, pttl_ms, &lock),
                        None if fields.is_empty() => continue,
                        None => rows.unrecognised(&key, "The key is a hash, but not one of Redisson's locks"),
                    });
                }
            }
        }
    }
    Ok(())
}

/// Keys that are read with one request.
fn groups(keys: Vec<Sized>) -> Vec<Vec<Sized>> {
    let mut groups: Vec<Vec<Sized>> = Vec::new();
    let mut bytes = 0;
    for sized in keys {
        bytes += sized.bytes;
        match groups.last_mut() {
            Some(group) if bytes <= LONG_READ_BYTES_MAX => group.push(sized),
            _ => {
                bytes = sized.bytes;
                groups.push(vec![sized]);
            }
        }
    }
    groups
}

fn memory_usage(key: &[u8]) -> Cmd {
    let mut cmd = ::redis::cmd("MEMORY");
    cmd.arg("USAGE").arg(key).arg("SAMPLES").arg(SAMPLES);
    cmd
}

/// The fields of one hash, read alone; `None` if it is no hash, or too large to be a lock.
pub(super) async fn small_hash(
    line: &RedisConnection,
    key: &[u8],
) -> Result<Option<Vec<(Vec<u8>, Vec<u8>)>>, BackendError> {
    match line.query(&on_key("HLEN", key)).await? {
        Value::Int(0..=HASH_FIELDS_MAX) => {}
        _ => return Ok(None),
    }
    match line.query(&memory_usage(key)).await? {
        Value::Int(bytes) if bytes.unsigned_abs() <= HASH_BYTES_MAX => {}
        _ => return Ok(None),
    }
    Ok(fields(line.query(&on_key("HGETALL", key)).await?))
}

/// The response of HGETALL: names and values alternate. `None` if one of them exceeded the
/// limit.
fn fields(answer: Value) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let Value::Array(flat) = answer else { return None };
    let mut flat = flat.into_iter();
    let mut fields = Vec::with_capacity(flat.len() / 2);
    while let Some(name) = flat.next() {
        match (name, flat.next()?) {
            (Value::BulkString(name), Value::BulkString(value)) => fields.push((name, value)),
            _ => return None,
        }
    }
    Some(fields)
}
