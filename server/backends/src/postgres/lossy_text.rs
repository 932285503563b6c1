//! Texts of system views, which contain names and queries of all databases in the encodings of those: not always
//! UTF-8. Stray bytes are replaced, so that no lock and no session is left out because of them.

use sqlx::postgres::PgRow;
use sqlx::{Row, ValueRef};

/// A column of type `text`, `name` or `bytea`; `None` if it is NULL.
pub(super) fn lossy_text(row: &PgRow, column: &str) -> Result<Option<String>, sqlx::Error> {
    let value = row.try_get_raw(column)?;
    if value.is_null() {
        return Ok(None);
    }
    let bytes = value.as_bytes().map_err(sqlx::Error::Decode)?;
    Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
}
