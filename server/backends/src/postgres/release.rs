//! Forced unlock: one statement ends the named holding, or finds nothing to end. With an
//! account of its own, on a session that is closed afterwards.

pub(super) mod blast_radius;
mod rows;
mod sessions;

use domain::force_release::Release;
use domain::generation::Generation;
use domain::names::{Resource, Source};
use domain::reported::Reported;

use super::connection::{Link, Links};
use super::error::{Refusal, StatementError};
use super::{PostgresBackend, advisory, relation};
use crate::BackendError;
use crate::release::{Acted, explain_unlock_account};

pub(super) const HOW: &str = "a lease's row is deleted or expired, a session is ended, each only if it still is what was \
                              seen; prepared transactions are refused with the statement that ends them";
pub(super) const NO_ACCOUNT: &str =
    "no `unlock_url` is configured; docs/backends/postgres.md has the role to create";

const LOGIN_REMEDY: &str = "Check the user, the password and the database of `unlock_url`, the role's CONNECT on that database, \
                            and the server's pg_hba.conf.";

pub(super) async fn release(
    backend: &PostgresBackend,
    source: &Source,
    resource: &Resource,
    expected: &Generation,
) -> Result<Release, BackendError> {
    let Some(unlocks) = &backend.unlocks else {
        return Ok(Release::refused(NO_ACCOUNT, "Set `unlock_url`."));
    };
    if *source == advisory::source() || *source == relation::source() {
        sessions::release(backend, unlocks, source, resource, expected).await
    } else {
        rows::release(backend, unlocks, source, resource, expected).await
    }
}

/// A session of the account for forced unlocks.
async fn acquire(unlocks: &Links) -> Result<Link<'_>, BackendError> {
    let link = unlocks.acquire().await;
    link.map_err(|error| explain_unlock_account(error, LOGIN_REMEDY))
}

/// A statement that failed before any change.
fn before_the_act(unlocks: &Links, failure: StatementError) -> Result<Acted, BackendError> {
    match failure {
        StatementError::Refused(refusal) => Ok(refused(
            &refusal,
            "Fix the error that the server reported, then try again.",
        )),
        StatementError::Lost(error) => Err(StatementError::Lost(error).into_backend(unlocks.timeout_ms())),
    }
}

fn refused(refusal: &Refusal, remedy: &str) -> Acted {
    Acted::Refused {
        why: format!("the server reported: {} ({})", refusal.message, refusal.code),
        remedy: remedy.to_owned(),
    }
}

/// A holding that cannot be distinguished from the next one.
fn refuse_unknown_generation<T>(generation: &Reported<T>) -> Option<Release> {
    let why = generation.why()?;
    Some(Release::refused(
        format!("this grant cannot be distinguished from the next one: {why}"),
        "docs/backends/postgres.md lists the permissions and the columns that identify a grant.",
    ))
}
