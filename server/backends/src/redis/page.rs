//! Reads the keys of one page: remaining times and beginnings of values in one round trip; long
//! values and other types in a few more.
//!
//! A key that cannot be read is a row with the reason, never a failure of the page.

use ::redis::{Cmd, Pipeline, ServerError, ServerErrorKind, Value};
use domain::limits::RESOURCE_BYTES_MAX;
use domain::observation::ObservedLock;
use domain::tick::Tick;

use super::connection::RedisConnection;
use super::error;
use super::limits::VALUE_BYTES_FIRST;
use super::non_string_keys;
use super::redirect::Redirect;
use super::rows::Rows;
use super::scan_warnings::Troubles;
use crate::BackendError;
use runtime::clock::Clock;

pub(super) type RedisKey = Vec<u8>;

/// Result of one page. Deleted keys are in neither list.
pub(super) struct Page {
    pub(super) sent_at: Tick,
    pub(super) locks: Vec<ObservedLock>,
    pub(super) troubles: Troubles,
    /// Keys that another node of a cluster has by now.
    pub(super) moved: Vec<(RedisKey, Redirect)>,
}

impl Page {
    pub(super) fn new(sent_at: Tick) -> Self {
        Self {
            sent_at,
            locks: Vec::new(),
            troubles: Troubles::default(),
            moved: Vec::new(),
        }
    }
}

/// Reads `keys`.
pub(super) async fn read(
    connection: &RedisConnection,
    rows: &Rows,
    clock: &Clock,
    mut keys: Vec<RedisKey>,
) -> Result<Page, BackendError> {
    let mut page = Page::new(clock.tick());
    page.locks.reserve(keys.len());
    keys.retain(|key| key.len() <= RESOURCE_BYTES_MAX || page.troubles.long_name());
    if keys.is_empty() {
        return Ok(page);
    }
    // The time is read first: if the key changes its owner in between, the shorter time is
    // shown.
    let mut commands = Pipeline::with_capacity(2 * keys.len());
    for key in &keys {
        commands.add_command(on_key("PTTL", key));
        commands.add_command(beginning(key, VALUE_BYTES_FIRST));
    }
    let mut answers = connection.query_all(&commands).await?.into_iter();
    let mut non_strings = Vec::new();
    for key in keys {
        let (Some(time), Some(value)) = (answers.next(), answers.next()) else {
            return Err(error::unexpected("PTTL"));
        };
        match (time, value) {
            // GETRANGE returns an empty string for a missing key.
            (Value::Int(-2), Value::BulkString(value)) if value.is_empty() => {}
            (Value::Int(pttl_ms @ -1..), Value::BulkString(value)) if is_whole(&value) => {
                page.locks.push(rows.string(&key, pttl_ms, &value));
            }
            (Value::Int(_), Value::BulkString(_)) => non_strings.push(key),
            (Value::Int(_), Value::ServerError(error)) if is_wrong_type(&error) => non_strings.push(key),
            (Value::ServerError(error), _) | (_, Value::ServerError(error)) => {
                refuse_key(rows, &key, &error, &mut page)?;
            }
            _ => return Err(error::unexpected("PTTL or GETRANGE")),
        }
    }
    if !non_strings.is_empty() {
        non_string_keys::read(connection, rows, non_strings, &mut page).await?;
    }
    Ok(page)
}

/// Neither empty, which may be a deleted key, nor possibly truncated.
fn is_whole(value: &[u8]) -> bool {
    (1..VALUE_BYTES_FIRST).contains(&value.len())
}

/// At most the first `bytes` of a string.
pub(super) fn beginning(key: &[u8], bytes: usize) -> Cmd {
    let mut cmd = Cmd::with_capacity(4, key.len() + 24);
    cmd.arg("GETRANGE").arg(key).arg(0).arg(bytes - 1);
    cmd
}

pub(super) fn is_wrong_type(error: &ServerError) -> bool {
    error.code() == "WRONGTYPE"
}

/// Adds a row for a key that this account may not read, or notes that it has moved; an error if
/// the account may read none.
pub(super) fn refuse_key(
    rows: &Rows,
    key: &[u8],
    error: &ServerError,
    page: &mut Page,
) -> Result<(), BackendError> {
    if let Some(to) = Redirect::from_server(error) {
        page.moved.push((key.to_vec(), to));
        return Ok(());
    }
    if !is_refusal(error) || is_refusal_of_command(error) {
        return Err(error::refused(error));
    }
    page.troubles.refuse_key(key);
    page.locks
        .push(rows.unrecognised(key, "This account may not read the key"));
    Ok(())
}

pub(super) fn is_refusal(error: &ServerError) -> bool {
    error.kind() == Some(ServerErrorKind::NoPerm)
}

/// The command itself is refused, not this key.
pub(super) fn is_refusal_of_command(error: &ServerError) -> bool {
    is_refusal(error) && error.details().is_some_and(|text| text.contains("to run the"))
}

pub(super) fn on_key(command: &str, key: &[u8]) -> Cmd {
    let mut cmd = Cmd::with_capacity(2, command.len() + key.len());
    cmd.arg(command).arg(key);
    cmd
}
