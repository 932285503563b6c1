//! Reads the keys of one page: remaining times and values in one round trip, and what is no string in two more.
//!
//! A key that cannot be read is a row that says so, never a failure of the page.

use ::redis::{Cmd, Pipeline, ServerError, ServerErrorKind, Value};
use domain::limits::RESOURCE_BYTES_MAX;
use domain::observation::{ObservedLock, Tick};

use super::fault;
use super::limits::VALUE_BYTES_MAX;
use super::link::Line;
use super::odd;
use super::rows::Rows;
use super::troubles::Troubles;
use crate::backends::BackendError;
use crate::clock::Clock;

pub(super) type Key = Vec<u8>;

/// What one page gave. Keys that are gone are in neither.
pub(super) struct Page {
    pub(super) sent_at: Tick,
    pub(super) locks: Vec<ObservedLock>,
    pub(super) troubles: Troubles,
}

/// Reads `keys`. `careful` asks for the lengths first, so that no long value crosses the wire.
pub(super) async fn read(
    line: &Line,
    rows: &Rows,
    clock: &Clock,
    mut keys: Vec<Key>,
    careful: bool,
) -> Result<Page, BackendError> {
    let mut page = Page {
        sent_at: clock.tick(),
        locks: Vec::with_capacity(keys.len()),
        troubles: Troubles::default(),
    };
    keys.retain(|key| key.len() <= RESOURCE_BYTES_MAX || page.troubles.long_name());
    if careful && !keys.is_empty() {
        keys = without_long_values(line, rows, keys, &mut page).await?;
    }
    if keys.is_empty() {
        return Ok(page);
    }
    let (times, values) = times_and_values(line, &keys).await?;
    let mut odd = Vec::new();
    for ((key, time), value) in keys.into_iter().zip(times).zip(values) {
        match (time, value) {
            (Value::Int(-2), Value::Nil) => {}
            (Value::Int(pttl_ms @ -1..), Value::BulkString(value)) => {
                page.troubles.long_value(value.len() > VALUE_BYTES_MAX);
                page.locks.push(rows.string(&key, pttl_ms, &value));
            }
            (Value::ServerError(error), _) | (_, Value::ServerError(error)) => {
                page.locks
                    .push(refused_key(rows, &key, &error, &mut page.troubles)?);
            }
            (Value::Int(_), Value::Nil | Value::BulkString(_)) => odd.push(key),
            _ => return Err(fault::unexpected("PTTL or MGET")),
        }
    }
    if !odd.is_empty() {
        odd::read(line, rows, odd, &mut page).await?;
    }
    Ok(page)
}

/// PTTL of each and MGET of all. The time is read first: should the key change hands in between, the time shown is
/// the shorter one.
async fn times_and_values(line: &Line, keys: &[Key]) -> Result<(Vec<Value>, Vec<Value>), BackendError> {
    let mut commands = Pipeline::with_capacity(keys.len() + 1);
    for key in keys {
        commands.add_command(on_key("PTTL", key));
    }
    let bytes: usize = keys.iter().map(Vec::len).sum();
    let mut mget = Cmd::with_capacity(keys.len() + 1, bytes + 4);
    mget.arg("MGET");
    for key in keys {
        mget.arg(key.as_slice());
    }
    commands.add_command(mget);
    let mut times = line.ask_all(&commands).await?;
    let values = match times.pop() {
        Some(Value::Array(values)) if values.len() == keys.len() => values,
        // One key out of this account's reach refuses them all.
        Some(Value::ServerError(error)) if is_refusal(&error) => one_by_one(line, keys).await?,
        Some(Value::ServerError(error)) => return Err(fault::refused(&error)),
        _ => return Err(fault::unexpected("MGET")),
    };
    Ok((times, values))
}

/// MGET of one key each: the same right as for many.
async fn one_by_one(line: &Line, keys: &[Key]) -> Result<Vec<Value>, BackendError> {
    let mut commands = Pipeline::with_capacity(keys.len());
    for key in keys {
        commands.add_command(on_key("MGET", key));
    }
    let answers = line.ask_all(&commands).await?;
    Ok(answers.into_iter().map(only).collect())
}

fn only(answer: Value) -> Value {
    match answer {
        Value::Array(mut values) if values.len() == 1 => values.pop().unwrap_or(Value::Nil),
        other => other,
    }
}

/// Leaves the keys whose values may be read; the others become rows.
async fn without_long_values(
    line: &Line,
    rows: &Rows,
    keys: Vec<Key>,
    page: &mut Page,
) -> Result<Vec<Key>, BackendError> {
    let mut commands = Pipeline::with_capacity(keys.len());
    for key in &keys {
        commands.add_command(on_key("STRLEN", key));
    }
    let lengths = line.ask_all(&commands).await?;
    let mut short = Vec::with_capacity(keys.len());
    for (key, length) in keys.into_iter().zip(lengths) {
        match length {
            Value::Int(bytes) if usize::try_from(bytes).is_ok_and(|bytes| bytes > VALUE_BYTES_MAX) => {
                page.troubles.long_value(true);
                page.locks.push(rows.too_long(&key, bytes.unsigned_abs()));
            }
            // Not a string, or STRLEN is not granted: the reads that follow find out.
            _ => short.push(key),
        }
    }
    Ok(short)
}

/// A row for a key that this account may not read; an error when it may read none.
pub(super) fn refused_key(
    rows: &Rows,
    key: &[u8],
    error: &ServerError,
    troubles: &mut Troubles,
) -> Result<ObservedLock, BackendError> {
    if !is_refusal(error) || is_refusal_of_command(error) {
        return Err(fault::refused(error));
    }
    troubles.refused_keys += 1;
    Ok(rows.unrecognised(key, "This account may not read the key"))
}

pub(super) fn is_refusal(error: &ServerError) -> bool {
    error.kind() == Some(ServerErrorKind::NoPerm)
}

/// The command itself, not this key.
pub(super) fn is_refusal_of_command(error: &ServerError) -> bool {
    is_refusal(error) && error.details().is_some_and(|text| text.contains("to run the"))
}

pub(super) fn on_key(command: &str, key: &[u8]) -> Cmd {
    let mut cmd = Cmd::with_capacity(2, command.len() + key.len());
    cmd.arg(command).arg(key);
    cmd
}
