//! Reads the keys that are no short strings, or that changed while they were read: type and size first, then the
//! contents, as many at once as their sizes allow.
//!
//! A hash is asked for its size before it is read, because reading a large one would hold the server up.

use ::redis::{Cmd, Pipeline, ServerError, Value};

use super::fault;
use super::limits::{HASH_BYTES_MAX, HASH_FIELDS_MAX, LONG_READ_BYTES_MAX, VALUE_BYTES_MAX};
use super::link::Line;
use super::page::{
    Key, Page, beginning, is_refusal, is_refusal_of_command, is_wrong_type, on_key, refused_key,
};
use super::redisson::RedissonLock;
use super::rows::Rows;
use crate::backends::BackendError;

/// Elements of a hash that MEMORY USAGE looks at: all of one that is read.
const SAMPLES: i64 = HASH_FIELDS_MAX;

/// A key whose contents may be read, with their size in bytes.
struct Sized {
    key: Key,
    bytes: u64,
}

/// Adds a row for each key that is there.
pub(super) async fn read(
    line: &Line,
    rows: &Rows,
    keys: Vec<Key>,
    page: &mut Page,
) -> Result<(), BackendError> {
    let mut commands = Pipeline::with_capacity(3 * keys.len());
    for key in &keys {
        commands.add_command(on_key("TYPE", key));
        commands.add_command(on_key("HLEN", key));
        commands.add_command(on_key("STRLEN", key));
    }
    let mut answers = line.ask_all(&commands).await?.into_iter();
    let (mut strings, mut hashes) = (Vec::new(), Vec::new());
    for key in keys {
        let (Some(kind), Some(fields), Some(bytes)) = (answers.next(), answers.next(), answers.next()) else {
            return Err(fault::unexpected("TYPE"));
        };
        match kind {
            Value::SimpleString(kind) => match kind.as_str() {
                "none" => {}
                "string" => strings.extend(string(rows, key, &bytes, page)),
                "hash" => hashes.extend(hash(rows, key, fields, page)?),
                other => {
                    let why = format!("The key is a {other}, which is no lock that we know");
                    page.locks.push(rows.unrecognised(&key, why));
                }
            },
            Value::ServerError(error) if is_refusal_of_command(&error) => {
                page.troubles.refused_commands.insert("TYPE");
                let why = "The key is no short string, and this account may not ask what it is (TYPE)";
                page.locks.push(rows.unrecognised(&key, why));
            }
            Value::ServerError(error) => {
                page.locks
                    .push(refused_key(rows, &key, &error, &mut page.troubles)?);
            }
            _ => return Err(fault::unexpected("TYPE")),
        }
    }
    read_strings(line, rows, strings, page).await?;
    let hashes = with_sizes(line, rows, hashes, page).await?;
    read_hashes(line, rows, hashes, page).await
}

/// A string that may be read. One of unknown length is read up to the limit.
fn string(rows: &Rows, key: Key, bytes: &Value, page: &mut Page) -> Option<Sized> {
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

/// A hash that is small enough by the number of its fields.
fn hash(rows: &Rows, key: Key, fields: Value, page: &mut Page) -> Result<Option<Key>, BackendError> {
    match fields {
        Value::Int(0..=HASH_FIELDS_MAX) => return Ok(Some(key)),
        Value::Int(fields) => {
            let why = format!("The key is a hash of {fields} fields, which is no lock that we know");
            page.locks.push(rows.unrecognised(&key, why));
        }
        Value::ServerError(error) => refused_hash(rows, &key, &error, "HLEN", page)?,
        _ => return Err(fault::unexpected("HLEN")),
    }
    Ok(None)
}

/// What is said of a hash of which `command` was refused.
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
    } else if is_refusal(error) {
        let row = refused_key(rows, key, error, &mut page.troubles)?;
        page.locks.push(row);
    }
    // Otherwise it is of another type by now; the next pass finds out.
    Ok(())
}

async fn read_strings(
    line: &Line,
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
        let mut answers = line.ask_all(&commands).await?.into_iter();
        for Sized { key, .. } in some {
            let (Some(before), Some(value), Some(bytes), Some(after)) =
                (answers.next(), answers.next(), answers.next(), answers.next())
            else {
                return Err(fault::unexpected("GETRANGE"));
            };
            match (before, value, after) {
                // It went while it was read: what is empty may be no key at all.
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
                // It is of another type by now; the next pass finds out.
                (_, Value::ServerError(error), _) if is_wrong_type(&error) => {}
                (Value::ServerError(error), ..) | (_, Value::ServerError(error), _) => {
                    page.locks
                        .push(refused_key(rows, &key, &error, &mut page.troubles)?);
                }
                _ => return Err(fault::unexpected("GETRANGE")),
            }
        }
    }
    Ok(())
}

/// Leaves the hashes that take little memory; the others become rows.
async fn with_sizes(
    line: &Line,
    rows: &Rows,
    keys: Vec<Key>,
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
    for (key, bytes) in keys.into_iter().zip(line.ask_all(&commands).await?) {
        match bytes {
            Value::Int(bytes) if bytes.unsigned_abs() <= HASH_BYTES_MAX => small.push(Sized {
                key,
                bytes: bytes.unsigned_abs(),
            }),
            Value::Int(bytes) => page.locks.push(rows.large_hash(&key, bytes.unsigned_abs())),
            Value::Nil => {}
            Value::ServerError(error) => refused_hash(rows, &key, &error, "MEMORY|USAGE", page)?,
            _ => return Err(fault::unexpected("MEMORY USAGE")),
        }
    }
    Ok(small)
}

async fn read_hashes(
    line: &Line,
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
        let mut answers = line.ask_all(&commands).await?.into_iter();
        for Sized { key, bytes } in some {
            let (Some(Value::Int(pttl_ms)), Some(value)) = (answers.next(), answers.next()) else {
                return Err(fault::unexpected("PTTL"));
            };
            match value {
                _ if pttl_ms == -2 => {}
                Value::ServerError(error) => refused_hash(rows, &key, &error, "HGETALL", page)?,
                Value::Array(flat) if flat.contains(&Value::Nil) => {
                    page.locks.push(rows.large_hash(&key, bytes));
                }
                other => {
                    let fields = fields(other).ok_or_else(|| fault::unexpected("HGETALL"))?;
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

/// The fields of one hash, read alone; none where it is no hash, or too large to be a lock.
pub(super) async fn small_hash(
    line: &Line,
    key: &[u8],
) -> Result<Option<Vec<(Vec<u8>, Vec<u8>)>>, BackendError> {
    match line.ask(&on_key("HLEN", key)).await? {
        Value::Int(0..=HASH_FIELDS_MAX) => {}
        _ => return Ok(None),
    }
    match line.ask(&memory_usage(key)).await? {
        Value::Int(bytes) if bytes.unsigned_abs() <= HASH_BYTES_MAX => {}
        _ => return Ok(None),
    }
    Ok(fields(line.ask(&on_key("HGETALL", key)).await?))
}

/// The answer of HGETALL: names and values in turn. None where one of them was too long to be kept.
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
