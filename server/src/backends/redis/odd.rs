//! Reads the keys that are no strings, or that changed while they were read: type and size first, then the fields.
//!
//! A hash is asked for its size before it is read, because reading a large one would hold the server up.

use ::redis::{Pipeline, Value};

use super::fault;
use super::limits::HASH_FIELDS_MAX;
use super::link::Line;
use super::page::{Key, Page, is_refusal, is_refusal_of_command, on_key, refused_key};
use super::redisson::RedissonLock;
use super::rows::Rows;
use crate::backends::BackendError;

/// Adds a row for each key that is there.
pub(super) async fn read(
    line: &Line,
    rows: &Rows,
    keys: Vec<Key>,
    page: &mut Page,
) -> Result<(), BackendError> {
    let mut commands = Pipeline::with_capacity(2 * keys.len());
    for key in &keys {
        commands.add_command(on_key("TYPE", key));
        commands.add_command(on_key("HLEN", key));
    }
    let mut answers = line.ask_all(&commands).await?.into_iter();
    let mut readable = Vec::new();
    for key in keys {
        let (Some(kind), Some(size)) = (answers.next(), answers.next()) else {
            return Err(fault::unexpected("TYPE"));
        };
        match (kind, size) {
            (Value::SimpleString(kind), size) => match (kind.as_str(), size) {
                ("none", _) => {}
                ("string", _) => readable.push((key, "MGET")),
                ("hash", Value::Int(0..=HASH_FIELDS_MAX)) => readable.push((key, "HGETALL")),
                ("hash", Value::Int(fields)) => {
                    let why = format!("The key is a hash of {fields} fields, which is no lock that we know");
                    page.locks.push(rows.unrecognised(&key, why));
                }
                ("hash", Value::ServerError(error)) if is_refusal_of_command(&error) => {
                    page.troubles.refused_commands.insert("HLEN");
                    page.locks.push(
                        rows.unrecognised(&key, "The key is a hash that this account may not read (HLEN)"),
                    );
                }
                // It was a hash a moment ago; the next pass finds out.
                ("hash", _) => {}
                (other, _) => {
                    let why = format!("The key is a {other}, which is no lock that we know");
                    page.locks.push(rows.unrecognised(&key, why));
                }
            },
            (Value::ServerError(error), _) if is_refusal_of_command(&error) => {
                page.troubles.refused_commands.insert("TYPE");
                let why = "The key is no string, and this account may not ask what it is (TYPE)";
                page.locks.push(rows.unrecognised(&key, why));
            }
            (Value::ServerError(error), _) => {
                page.locks
                    .push(refused_key(rows, &key, &error, &mut page.troubles)?);
            }
            _ => return Err(fault::unexpected("TYPE")),
        }
    }
    contents(line, rows, readable, page).await
}

async fn contents(
    line: &Line,
    rows: &Rows,
    keys: Vec<(Key, &'static str)>,
    page: &mut Page,
) -> Result<(), BackendError> {
    if keys.is_empty() {
        return Ok(());
    }
    let mut commands = Pipeline::with_capacity(2 * keys.len());
    for (key, command) in &keys {
        commands.add_command(on_key("PTTL", key));
        commands.add_command(on_key(command, key));
    }
    let mut answers = line.ask_all(&commands).await?.into_iter();
    for (key, command) in keys {
        let (Some(Value::Int(pttl_ms)), Some(value)) = (answers.next(), answers.next()) else {
            return Err(fault::unexpected("PTTL"));
        };
        if pttl_ms == -2 {
            continue;
        }
        match value {
            Value::Array(mut values) if command == "MGET" => {
                if let Some(Value::BulkString(value)) = values.pop() {
                    page.locks.push(rows.string(&key, pttl_ms, &value));
                }
            }
            Value::ServerError(error) if is_refusal_of_command(&error) => {
                page.troubles.refused_commands.insert(command);
                let why = format!("The key is a hash that this account may not read ({command})");
                page.locks.push(rows.unrecognised(&key, why));
            }
            Value::ServerError(error) if is_refusal(&error) => {
                page.locks
                    .push(refused_key(rows, &key, &error, &mut page.troubles)?);
            }
            // It is of another type by now; the next pass finds out.
            Value::ServerError(_) => {}
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
    Ok(())
}

/// The answer of HGETALL: names and values in turn.
pub(super) fn fields(answer: Value) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
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
