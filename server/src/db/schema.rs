//! The store's tables beside what this binary knows of them: brought up to date, compared without touching them, and refused
//! where a newer version has taken something away that we rely on.
//!
//! **Invariant:** migrations only add, so that the version before goes on working beside a newer one and after a way back; one
//! that takes away is named `contract_…`, and whoever does not know it does not start.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{PgConnection, SqliteConnection};
use thiserror::Error;

static SQLITE: Migrator = sqlx::migrate!("../migrations/sqlite");
static POSTGRES: Migrator = sqlx::migrate!("../migrations/postgres");

/// The first word of what older versions cannot live with, as a description says it.
const CONTRACT: &str = "contract";
/// Migrations that were tried, the oldest first.
const APPLIED: &str = "SELECT version, description, success FROM _sqlx_migrations ORDER BY version";

#[derive(Debug, Error)]
pub enum SchemaError {
    #[error(
        "a newer version has taken away what this one needs (migration {version}, {description:?}): start that version \
         again, or put back a backup from before it"
    )]
    Newer { version: i64, description: String },
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(
        "the tables are {missing} migrations behind, and the role of `store` may not change them: run `leasehold migrate` \
         as the owner, with the owner's address in LEASEHOLD_STORE, then start again"
    )]
    NotOwner { missing: usize },
    #[error("cannot read which tables there are: {0}")]
    Read(#[from] sqlx::Error),
}

/// How the tables stand to this binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing of ours is there yet.
    Fresh,
    Current {
        version: i64,
    },
    /// So many migrations are still to be done; starting does them.
    Behind {
        version: i64,
        missing: Vec<i64>,
    },
    /// A newer version has added to them; this one works all the same.
    Ahead {
        version: i64,
    },
    /// A newer version has taken something away.
    TooNew {
        version: i64,
        description: String,
    },
    /// A migration began and did not end.
    Dirty {
        version: i64,
    },
}

type Applied = (i64, String, bool);

/// Brings the tables up to date. What a newer version has added is left alone.
pub(crate) async fn migrate_sqlite(connection: &mut SqliteConnection) -> Result<(), SchemaError> {
    let applied = applied_sqlite(connection).await?;
    refuse_too_new(&SQLITE, &applied)?;
    Ok(tolerant(&SQLITE).run(connection).await?)
}

/// As [`migrate_sqlite`].
pub(crate) async fn migrate_postgres(connection: &mut PgConnection) -> Result<(), SchemaError> {
    let applied = applied_postgres(connection).await?;
    refuse_too_new(&POSTGRES, &applied)?;
    if !may_migrate_postgres(connection).await? {
        return match standing(&POSTGRES, &applied) {
            Standing::Current { .. } | Standing::Ahead { .. } | Standing::TooNew { .. } => Ok(()),
            Standing::Dirty { version } => Err(MigrateError::Dirty(version).into()),
            Standing::Behind { missing, .. } => Err(SchemaError::NotOwner {
                missing: missing.len(),
            }),
            Standing::Fresh => Err(SchemaError::NotOwner {
                missing: POSTGRES.iter().count(),
            }),
        };
    }
    Ok(tolerant(&POSTGRES).run(connection).await?)
}

/// Whether this role may make tables, and owns those that are there.
pub(crate) async fn may_migrate_postgres(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let may = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AND coalesce(
        (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('_sqlx_migrations')), true)";
    sqlx::query_scalar(may).fetch_one(connection).await
}

/// Reads and changes nothing.
pub(crate) async fn standing_sqlite(connection: &mut SqliteConnection) -> Result<Standing, sqlx::Error> {
    Ok(standing(&SQLITE, &applied_sqlite(connection).await?))
}

/// As [`standing_sqlite`].
pub(crate) async fn standing_postgres(connection: &mut PgConnection) -> Result<Standing, sqlx::Error> {
    Ok(standing(&POSTGRES, &applied_postgres(connection).await?))
}

async fn applied_sqlite(connection: &mut SqliteConnection) -> Result<Vec<Applied>, sqlx::Error> {
    let there = "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    let there: i64 = sqlx::query_scalar(there).fetch_one(&mut *connection).await?;
    if there == 0 {
        return Ok(Vec::new());
    }
    sqlx::query_as(APPLIED).fetch_all(connection).await
}

async fn applied_postgres(connection: &mut PgConnection) -> Result<Vec<Applied>, sqlx::Error> {
    let there = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    let there: bool = sqlx::query_scalar(there).fetch_one(&mut *connection).await?;
    if !there {
        return Ok(Vec::new());
    }
    sqlx::query_as(APPLIED).fetch_all(connection).await
}

fn tolerant(migrator: &Migrator) -> Migrator {
    let mut tolerant = Migrator {
        migrations: migrator.migrations.clone(),
        ..Migrator::DEFAULT
    };
    tolerant.set_ignore_missing(true);
    tolerant
}

fn refuse_too_new(migrator: &Migrator, applied: &[Applied]) -> Result<(), SchemaError> {
    match too_new(migrator, applied) {
        Some((version, description, _)) => Err(SchemaError::Newer {
            version: *version,
            description: description.clone(),
        }),
        None => Ok(()),
    }
}

fn too_new<'a>(migrator: &Migrator, applied: &'a [Applied]) -> Option<&'a Applied> {
    applied.iter().find(|(version, description, _)| {
        !migrator.version_exists(*version) && description.split([' ', '_']).next() == Some(CONTRACT)
    })
}

fn standing(migrator: &Migrator, applied: &[Applied]) -> Standing {
    let Some((version, ..)) = applied.last() else {
        return Standing::Fresh;
    };
    let version = *version;
    if let Some((version, ..)) = applied.iter().find(|(.., success)| !success) {
        return Standing::Dirty { version: *version };
    }
    if let Some((version, description, _)) = too_new(migrator, applied) {
        let (version, description) = (*version, description.clone());
        return Standing::TooNew { version, description };
    }
    let is_applied = |known: i64| applied.iter().any(|(version, ..)| *version == known);
    let missing = migrator.iter().map(|known| known.version);
    let missing: Vec<i64> = missing.filter(|known| !is_applied(*known)).collect();
    match missing.is_empty() {
        false => Standing::Behind { version, missing },
        true if !migrator.version_exists(version) => Standing::Ahead { version },
        true => Standing::Current { version },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_judged_by_what_was_done_to_them() {
        // All done; one left out; one more, harmless; one more that takes away; one half done; nothing.
        let all: Vec<Applied> = SQLITE
            .iter()
            .map(|one| (one.version, one.description.to_string(), true))
            .collect();
        let last = all.last().unwrap().0;
        let more = |description: &str| {
            let mut more = all.clone();
            more.push((9_001, description.to_owned(), true));
            more
        };
        assert_eq!(standing(&SQLITE, &all), Standing::Current { version: last });
        let behind = standing(&SQLITE, &all[..all.len() - 1]);
        assert!(matches!(behind, Standing::Behind { missing, .. } if missing == [last]));
        assert_eq!(
            standing(&SQLITE, &more("add a column")),
            Standing::Ahead { version: 9_001 }
        );
        let taken = standing(&SQLITE, &more("contract drop a column"));
        assert!(matches!(taken, Standing::TooNew { version: 9_001, .. }));
        assert!(refuse_too_new(&SQLITE, &more("contract drop a column")).is_err());
        let mut dirty = all.clone();
        dirty[0].2 = false;
        assert!(matches!(standing(&SQLITE, &dirty), Standing::Dirty { .. }));
        assert_eq!(standing(&SQLITE, &[]), Standing::Fresh);
    }

    /// `leases` is made anew by migration 19: its rows and rules are the same afterwards.
    #[tokio::test]
    async fn leases_of_an_older_sqlite_store_are_kept() {
        use sqlx::Connection as _;

        let mut store = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        SQLITE.run_to(16, &mut store).await.unwrap();
        // Held, released, revoked: the columns that may be empty are, and are not.
        let rows = "INSERT INTO leases VALUES
            ('1', 'a', 'o', 'i', 1, 30, '{}', 10, 40, 10, 0, NULL, NULL, NULL, NULL, NULL),
            ('2', 'b', 'o', 'i', 2, 30, '{\"k\":\"v\"}', 10, 40, 20, 1, 25, 'released', NULL, NULL, NULL),
            ('3', 'b', 'o', 'i', 3, 30, '{}', 30, 60, 30, 0, 35, 'revoked', 'anna', 'stuck', 'audit-1');
            INSERT INTO resource_tokens VALUES ('a', 1, '1', NULL), ('b', 3, '3', 50)";
        sqlx::raw_sql(rows).execute(&mut store).await.unwrap();
        let all = "SELECT json_group_array(json_array(lease_id, resource, owner_id, issuer, fencing_token, ttl_seconds, metadata,
            acquired_at, expires_at, renewed_at, renewals, ended_at, ended_how, revoked_by, revoke_reason, audit_id))
            FROM leases";
        let before: String = sqlx::query_scalar(all).fetch_one(&mut store).await.unwrap();

        migrate_sqlite(&mut store).await.unwrap();
        let after: String = sqlx::query_scalar(all).fetch_one(&mut store).await.unwrap();
        assert_eq!(after, before);

        // Two without an ending, an ending of no known kind, an ending without its moment, a counter that falls.
        let held = "INSERT INTO leases SELECT '4', resource, owner_id, issuer, 4, 30, '{}', 10, 40, 10, 0";
        let refused = [
            format!("{held}, NULL, NULL, NULL, NULL, NULL FROM leases WHERE lease_id = '1'"),
            format!("{held}, 25, 'lost', NULL, NULL, NULL FROM leases WHERE lease_id = '1'"),
            format!("{held}, NULL, 'expired', NULL, NULL, NULL FROM leases WHERE lease_id = '1'"),
            "UPDATE resource_tokens SET last_token = 2 WHERE resource = 'b'".to_owned(),
            "DELETE FROM resource_tokens WHERE resource = 'b'".to_owned(),
        ];
        for statement in refused {
            let done = sqlx::query(sqlx::AssertSqlSafe(statement.clone()))
                .execute(&mut store)
                .await;
            assert!(
                matches!(done, Err(sqlx::Error::Database(_))),
                "{statement}: {done:?}"
            );
        }
        let kept: String = sqlx::query_scalar(all).fetch_one(&mut store).await.unwrap();
        assert_eq!(kept, before);
    }
}
