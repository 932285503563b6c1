//! Version and account permissions, each wrong one with the statement that fixes it.

use domain::backend::AccountPermission;
use domain::reported::Reported;
use sqlx::Row;
use sqlx::postgres::PgRow;

use super::connection::Link;
use super::error::StatementError;
use super::table::LeaseTable;
use super::{PostgresBackend, catalog};
use crate::{BackendError, Probe};

const ACCOUNT: &str = "
SELECT version() AS version, quote_ident(current_user) AS account,
       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser,
       pg_has_role(current_user, 'pg_read_all_stats', 'USAGE') AS sees_sessions,
       pg_has_role(current_user, 'pg_signal_backend', 'MEMBER') AS may_signal";

const WRITES: &str = "
SELECT has_table_privilege($1, 'DELETE') OR has_table_privilege($1, 'TRUNCATE')
    OR has_any_column_privilege($1, 'INSERT') OR has_any_column_privilege($1, 'UPDATE')";

/// Attributes of the account.
struct Account {
    version: String,
    /// Quoted if SQL requires it.
    name: String,
    superuser: bool,
    sees_sessions: bool,
    may_signal: bool,
}

pub(super) async fn probe(backend: &PostgresBackend) -> Result<Probe, BackendError> {
    let timeout_ms = backend.links.timeout_ms();
    let mut link = backend.links.acquire().await?;
    probe_server(backend, &mut link)
        .await
        .map_err(|failure| failure.into_backend(timeout_ms))
}

async fn probe_server(backend: &PostgresBackend, link: &mut Link<'_>) -> Result<Probe, StatementError> {
    let rows = link.rows(sqlx::query(ACCOUNT)).await?;
    let unreadable = || {
        StatementError::Lost(BackendError::Protocol {
            detail: "the account cannot be read".to_owned(),
        })
    };
    let account = rows
        .first()
        .and_then(|row| account(row).ok())
        .ok_or_else(unreadable)?;
    let mut rights = sessions(&account);
    let checked_tables = catalog::check(link, &backend.tables).await?;
    for (table, checked) in backend.tables.iter().zip(checked_tables) {
        match checked {
            Ok(checked) => {
                let written = link.rows(sqlx::query(WRITES).bind(checked.found.oid)).await?;
                let may_write = written.first().and_then(|row| row.try_get::<bool, _>(0).ok());
                rights.extend(table_permissions(
                    table,
                    &checked.found.shown,
                    &account.name,
                    may_write,
                ));
            }
            Err(why) => rights.push(AccountPermission {
                what: format!("SELECT on {}", table.quoted_name()),
                allowed: Reported::Unknown(why.clone().into()),
                wanted: true,
                remedy: why,
            }),
        }
    }
    Ok(Probe {
        version: Reported::Value(short_version(&account.version)),
        rights,
    })
}

fn account(row: &PgRow) -> Result<Account, sqlx::Error> {
    Ok(Account {
        version: row.try_get("version")?,
        name: row.try_get("account")?,
        superuser: row.try_get("superuser")?,
        sees_sessions: row.try_get("sees_sessions")?,
        may_signal: row.try_get("may_signal")?,
    })
}

/// `PostgreSQL 15.8`, without the compiler that built it.
fn short_version(version: &str) -> String {
    version.split(" on ").next().unwrap_or(version).to_owned()
}

fn sessions(account: &Account) -> Vec<AccountPermission> {
    let name = &account.name;
    let ordinary = format!("ALTER ROLE {name} NOSUPERUSER;");
    vec![
        AccountPermission {
            what: "see the sessions of others (pg_monitor or pg_read_all_stats)".to_owned(),
            allowed: Reported::Value(account.sees_sessions),
            wanted: true,
            remedy: format!("GRANT pg_read_all_stats TO {name};"),
        },
        AccountPermission {
            what: "superuser".to_owned(),
            allowed: Reported::Value(account.superuser),
            wanted: false,
            remedy: ordinary.clone(),
        },
        AccountPermission {
            what: "end the sessions of others (pg_signal_backend)".to_owned(),
            allowed: Reported::Value(account.may_signal),
            wanted: false,
            remedy: if account.superuser {
                ordinary
            } else {
                format!("REVOKE pg_signal_backend FROM {name};")
            },
        },
    ]
}

fn table_permissions(
    table: &LeaseTable,
    shown: &str,
    account: &str,
    may_write: Option<bool>,
) -> [AccountPermission; 2] {
    [
        AccountPermission {
            what: format!("SELECT on {}", table.quoted_name()),
            allowed: Reported::Value(true),
            wanted: true,
            remedy: format!("GRANT SELECT ON {shown} TO {account};"),
        },
        AccountPermission {
            what: format!("INSERT, UPDATE or DELETE on {}", table.quoted_name()),
            allowed: match may_write {
                Some(may) => Reported::Value(may),
                None => Reported::unknown("the server did not say"),
            },
            wanted: false,
            remedy: format!(
                "REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {shown} FROM {account}; \
                 -- or from the group, or PUBLIC, that it comes through"
            ),
        },
    ]
}
