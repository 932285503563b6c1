//! Reads keys that are not short strings, or that changed while they were read: type and size
//! first, then contents, grouped by size.

use ::redis::{Pipeline, Value};

use super::collections::{self, Collection};
use super::connection::RedisConnection;
use super::error;
use super::limits::{LONG_READ_BYTES_MAX, VALUE_BYTES_MAX};
use super::page::{Page, RedisKey, beginning, is_refusal_of_command, is_wrong_type, on_key, refuse_key};
use super::rows::Rows;
use crate::BackendError;

/// A key whose contents may be read, with their size in bytes.
pub(super) struct Sized<K> {
    pub(super) key: K,
    pub(super) bytes: u64,
}

/// Adds a row for each existing key.
pub(super) async fn read(
    connection: &RedisConnection,
    rows: &Rows,
    keys: Vec<RedisKey>,
    page: &mut Page,
) -> Result<(), BackendError> {
    let mut commands = Pipeline::with_capacity(2 * keys.len());
    for key in &keys {
        commands.add_command(on_key("TYPE", key));
        commands.add_command(on_key("STRLEN", key));
    }
    let mut answers = connection.query_all(&commands).await?.into_iter();
    let (mut strings, mut others) = (Vec::new(), Vec::new());
    for key in keys {
        let (Some(kind), Some(bytes)) = (answers.next(), answers.next()) else {
            return Err(error::unexpected("TYPE"));
        };
        match kind {
            Value::SimpleString(kind) => match (kind.as_str(), Collection::from_type(&kind)) {
                ("none", _) => {}
                ("string", _) => strings.extend(string(rows, key, &bytes, page)),
                (_, Some(collection)) => others.push((key, collection)),
                (other, None) => {
                    let why = format!("The key is a {other}, which is not a known lock type");
                    page.locks.push(rows.unrecognised(&key, why));
                }
            },
            Value::ServerError(error) if is_refusal_of_command(&error) => {
                page.troubles.refuse_command("TYPE", &key);
                let why = "The key is not a short string, and this account may not read its type (TYPE)";
                page.locks.push(rows.unrecognised(&key, why));
            }
            Value::ServerError(error) => {
                refuse_key(rows, &key, &error, page)?;
            }
            _ => return Err(error::unexpected("TYPE")),
        }
    }
    read_strings(connection, rows, strings, page).await?;
    collections::read(connection, rows, others, page).await
}

/// A readable string. One of unknown length is read up to the limit.
fn string(rows: &Rows, key: RedisKey, bytes: &Value, page: &mut Page) -> Option<Sized<RedisKey>> {
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

async fn read_strings(
    connection: &RedisConnection,
    rows: &Rows,
    strings: Vec<Sized<RedisKey>>,
    page: &mut Page,
) -> Result<(), BackendError> {
    for group in groups(strings) {
        let mut commands = Pipeline::with_capacity(4 * group.len());
        for Sized { key, .. } in &group {
            commands.add_command(on_key("PTTL", key));
            commands.add_command(beginning(key, VALUE_BYTES_MAX));
            commands.add_command(on_key("STRLEN", key));
            commands.add_command(on_key("PTTL", key));
        }
        let mut answers = connection.query_all(&commands).await?.into_iter();
        for Sized { key, .. } in group {
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
                    let is_complete = value.len() < VALUE_BYTES_MAX || bytes == Some(VALUE_BYTES_MAX as u64);
                    page.locks.push(if is_complete {
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

/// Keys that are read with one request.
pub(super) fn groups<K>(keys: Vec<Sized<K>>) -> Vec<Vec<Sized<K>>> {
    let mut groups: Vec<Vec<Sized<K>>> = Vec::new();
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
