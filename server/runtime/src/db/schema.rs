//! Schema of the store: migration, comparison without changes, and refusal of a newer schema that removed something
//! this binary needs.
//!
//! **Invariant:** migrations only add, so that the previous version works next to a newer one and after a rollback;
//! a migration that removes something is named `contract_…`, and a binary that does not know it does not start.

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{PgConnection, SqliteConnection};
use thiserror::Error;

use super::migrations::{POSTGRES, SQLITE};

/// Prefix in the description of migrations that older versions cannot work with.
const CONTRACT: &str = "contract";
/// Applied migrations, oldest first.
const APPLIED: &str = "SELECT version, description, success FROM _sqlx_migrations ORDER BY version";

#[derive(Debug, Error)]
pub enum SchemaError {
    #[error(
        "a newer version removed tables or columns that this version needs (migration {version}, {description:?}): \
         start that version again, or restore a backup from before the upgrade"
    )]
    Newer { version: i64, description: String },
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    #[error(
        "the tables are {missing} migrations behind, and the role of `store` may not change them: run `leasehold migrate` \
         as the owner, with the owner's address in LEASEHOLD_STORE, then start again"
    )]
    NotOwner { missing: usize },
    #[error("cannot read the applied migrations: {0}")]
    Read(#[from] sqlx::Error),
}

/// Schema version of a store compared with this binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MigrationStatus {
    /// No tables yet.
    Fresh,
    Current {
        version: i64,
    },
    /// Migrations are pending; a start applies them.
    Behind {
        version: i64,
        missing: Vec<i64>,
    },
    /// A newer version has added to the schema; this one still works.
    Ahead {
        version: i64,
    },
    /// A newer version has removed something.
    TooNew {
        version: i64,
        description: String,
    },
    /// A migration began and did not finish.
    Dirty {
        version: i64,
    },
}

impl MigrationStatus {
    /// Whether every table and column of this version is there.
    pub fn is_complete(&self) -> bool {
        matches!(self, Self::Current { .. } | Self::Ahead { .. })
    }
}

type Applied = (i64, String, bool);

/// Migrates the tables. Additions of a newer version are left unchanged.
pub async fn migrate_sqlite(connection: &mut SqliteConnection) -> Result<(), SchemaError> {
    let applied = applied_sqlite(connection).await?;
    refuse_too_new(&SQLITE, &applied)?;
    Ok(tolerant(&SQLITE).run(connection).await?)
}

/// As [`migrate_sqlite`].
pub async fn migrate_postgres(connection: &mut PgConnection) -> Result<(), SchemaError> {
    let applied = applied_postgres(connection).await?;
    refuse_too_new(&POSTGRES, &applied)?;
    if !may_migrate_postgres(connection).await? {
        return match migration_status(&POSTGRES, &applied) {
            MigrationStatus::Current { .. }
            | MigrationStatus::Ahead { .. }
            | MigrationStatus::TooNew { .. } => Ok(()),
            MigrationStatus::Dirty { version } => Err(MigrateError::Dirty(version).into()),
            MigrationStatus::Behind { missing, .. } => Err(SchemaError::NotOwner {
                missing: missing.len(),
            }),
            MigrationStatus::Fresh => Err(SchemaError::NotOwner {
                missing: POSTGRES.iter().count(),
            }),
        };
    }
    Ok(tolerant(&POSTGRES).run(connection).await?)
}

/// Whether this role may create tables and owns the existing ones.
pub async fn may_migrate_postgres(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    let may = "SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AND coalesce(
        (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('_sqlx_migrations')), true)";
    sqlx::query_scalar(may).fetch_one(connection).await
}

/// Read-only.
pub async fn status_sqlite(connection: &mut SqliteConnection) -> Result<MigrationStatus, sqlx::Error> {
    Ok(migration_status(&SQLITE, &applied_sqlite(connection).await?))
}

/// As [`status_sqlite`].
pub async fn status_postgres(connection: &mut PgConnection) -> Result<MigrationStatus, sqlx::Error> {
    Ok(migration_status(&POSTGRES, &applied_postgres(connection).await?))
}

async fn applied_sqlite(connection: &mut SqliteConnection) -> Result<Vec<Applied>, sqlx::Error> {
    let query = "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    let tables: i64 = sqlx::query_scalar(query).fetch_one(&mut *connection).await?;
    if tables == 0 {
        return Ok(Vec::new());
    }
    sqlx::query_as(APPLIED).fetch_all(connection).await
}

async fn applied_postgres(connection: &mut PgConnection) -> Result<Vec<Applied>, sqlx::Error> {
    let query = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
    let exists: bool = sqlx::query_scalar(query).fetch_one(&mut *connection).await?;
    if !exists {
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

fn migration_status(migrator: &Migrator, applied: &[Applied]) -> MigrationStatus {
    let Some((version, ..)) = applied.last() else {
        return MigrationStatus::Fresh;
    };
    let version = *version;
    if let Some((version, ..)) = applied.iter().find(|(.., success)| !success) {
        return MigrationStatus::Dirty { version: *version };
    }
    if let Some((version, description, _)) = too_new(migrator, applied) {
        let (version, description) = (*version, description.clone());
        return MigrationStatus::TooNew { version, description };
    }
    let is_applied = |known: i64| applied.iter().any(|(version, ..)| *version == known);
    let missing = migrator.iter().map(|known| known.version);
    let missing: Vec<i64> = missing.filter(|known| !is_applied(*known)).collect();
    match missing.is_empty() {
        false => MigrationStatus::Behind { version, missing },
        true if !migrator.version_exists(version) => MigrationStatus::Ahead { version },
        true => MigrationStatus::Current { version },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_status_follows_the_applied_migrations() {
        // All applied; one missing; one additional; one additional that removes; one unfinished; none.
        let applied: Vec<Applied> = SQLITE
            .iter()
            .map(|migration| (migration.version, migration.description.to_string(), true))
            .collect();
        let last = applied.last().unwrap().0;
        let with_migration = |description: &str| {
            let mut migrations = applied.clone();
            migrations.push((9_001, description.to_owned(), true));
            migrations
        };
        assert_eq!(
            migration_status(&SQLITE, &applied),
            MigrationStatus::Current { version: last }
        );
        let behind = migration_status(&SQLITE, &applied[..applied.len() - 1]);
        assert!(matches!(behind, MigrationStatus::Behind { missing, .. } if missing == [last]));
        assert_eq!(
            migration_status(&SQLITE, &with_migration("add a column")),
            MigrationStatus::Ahead { version: 9_001 }
        );
        let taken = migration_status(&SQLITE, &with_migration("contract drop a column"));
        assert!(matches!(taken, MigrationStatus::TooNew { version: 9_001, .. }));
        assert!(refuse_too_new(&SQLITE, &with_migration("contract drop a column")).is_err());
        let mut dirty = applied.clone();
        dirty[0].2 = false;
        assert!(matches!(
            migration_status(&SQLITE, &dirty),
            MigrationStatus::Dirty { .. }
        ));
        assert_eq!(migration_status(&SQLITE, &[]), MigrationStatus::Fresh);
    }

    async fn fresh_sqlite() -> SqliteConnection {
        use sqlx::Connection as _;

        let mut store = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        migrate_sqlite(&mut store).await.unwrap();
        store
    }

    #[tokio::test]
    async fn lease_tables_reject_rows_against_their_rules() {
        // One held, one released, one revoked lease.
        let mut store = fresh_sqlite().await;
        let rows = "INSERT INTO leases VALUES
            ('1', 'a', 'o', 'i', 1, 30, '{}', 10, 40, 10, 0, NULL, NULL, NULL, NULL, NULL),
            ('2', 'b', 'o', 'i', 2, 30, '{\"k\":\"v\"}', 10, 40, 20, 1, 25, 'released', NULL, NULL, NULL),
            ('3', 'b', 'o', 'i', 3, 30, '{}', 30, 60, 30, 0, 35, 'revoked', 'anna', 'stuck', 'audit-1');
            INSERT INTO resource_tokens VALUES ('a', 1, '1', NULL), ('b', 3, '3', 50)";
        sqlx::raw_sql(rows).execute(&mut store).await.unwrap();
        let all_rows = "SELECT json_group_array(json_array(lease_id, resource, owner_id, issuer, fencing_token, ttl_seconds, metadata,
            acquired_at, expires_at, renewed_at, renewals, ended_at, ended_how, revoked_by, revoke_reason, audit_id))
            FROM leases";
        let before: String = sqlx::query_scalar(all_rows).fetch_one(&mut store).await.unwrap();

        // A second held lease, an unknown way to end, an end without its time, a decreasing and a deleted counter.
        let held = "INSERT INTO leases SELECT '4', resource, owner_id, issuer, 4, 30, '{}', 10, 40, 10, 0";
        let rejected = [
            format!("{held}, NULL, NULL, NULL, NULL, NULL FROM leases WHERE lease_id = '1'"),
            format!("{held}, 25, 'lost', NULL, NULL, NULL FROM leases WHERE lease_id = '1'"),
            format!("{held}, NULL, 'expired', NULL, NULL, NULL FROM leases WHERE lease_id = '1'"),
            "UPDATE resource_tokens SET last_token = 2 WHERE resource = 'b'".to_owned(),
            "DELETE FROM resource_tokens WHERE resource = 'b'".to_owned(),
        ];
        for statement in rejected {
            let result = sqlx::query(sqlx::AssertSqlSafe(statement.clone()))
                .execute(&mut store)
                .await;
            assert!(
                matches!(result, Err(sqlx::Error::Database(_))),
                "{statement}: {result:?}"
            );
        }
        let after: String = sqlx::query_scalar(all_rows).fetch_one(&mut store).await.unwrap();
        assert_eq!(after, before);
    }
}
