//! The mark of an SQL store whose leases were moved to another store: no server grants from it again.

use sqlx::{Database, Executor, IntoArguments};

use crate::error::LeaseOpenError;

pub(super) const READ: &str = "SELECT moved_to FROM store_meta";
/// Cleared together with a raised epoch: the other store may have issued tokens since.
pub(super) const CLEAR: &str = "UPDATE store_meta SET moved_to = NULL";

/// Where the leases of this store were moved to; the store has all migrations.
///
/// # Errors
/// The store does not answer.
pub(super) async fn moved_to<'c, D, E>(connection: E) -> Result<Option<String>, sqlx::Error>
where
    D: Database,
    E: Executor<'c, Database = D>,
    for<'q> D::Arguments: IntoArguments<D>,
    for<'r> (Option<String>,): sqlx::FromRow<'r, D::Row>,
{
    let moved: Option<(Option<String>,)> = sqlx::query_as(READ).fetch_optional(connection).await?;
    Ok(moved.and_then(|(to,)| to))
}

/// # Errors
/// `Moved`; the store does not answer.
pub(super) async fn refuse_moved<'c, D, E>(connection: E) -> Result<(), LeaseOpenError>
where
    D: Database,
    E: Executor<'c, Database = D>,
    for<'q> D::Arguments: IntoArguments<D>,
    for<'r> (Option<String>,): sqlx::FromRow<'r, D::Row>,
{
    match moved_to(connection).await.map_err(LeaseOpenError::Store)? {
        Some(to) => Err(LeaseOpenError::Moved { to }),
        None => Ok(()),
    }
}
