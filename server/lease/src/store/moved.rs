//! The mark of an SQL store whose leases were moved to another store: no server grants from it again.

use sqlx::{Database, Executor, IntoArguments};

use crate::error::LeaseOpenError;

pub(super) const READ: &str = "SELECT moved_to FROM store_meta";
/// Cleared together with a raised epoch: the other store may have issued tokens since.
pub(super) const CLEAR: &str = "UPDATE store_meta SET moved_to = NULL";

/// # Errors
/// `Moved`; the store does not answer.
pub(super) async fn refuse_moved<'c, D, E>(connection: E) -> Result<(), LeaseOpenError>
where
    D: Database,
    E: Executor<'c, Database = D>,
    for<'q> D::Arguments: IntoArguments<D>,
    for<'r> (Option<String>,): sqlx::FromRow<'r, D::Row>,
{
    let moved: Option<(Option<String>,)> = sqlx::query_as(READ)
        .fetch_optional(connection)
        .await
        .map_err(LeaseOpenError::Store)?;
    match moved.and_then(|(to,)| to) {
        Some(to) => Err(LeaseOpenError::Moved { to }),
        None => Ok(()),
    }
}
