//! An audit log in a throwaway store, its checkpoints, and statements that tamper with it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::audit::Action;
use leasehold::audit::{Actor, Audit, ChainCheckpoints, Entry, EntrySubject, Origin, checkpoints};
use runtime::clock::Clock;
use runtime::db::{Db, console_file};
use sqlx::AssertSqlSafe;

use crate::support::Store;

impl Store {
    /// The same Postgres, another database: one that orders texts as English has them.
    pub(super) async fn in_english(mut self) -> Self {
        let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
        let create = "CREATE DATABASE english TEMPLATE template0 ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en-US'";
        sqlx::raw_sql(create).execute(&pool).await.unwrap();
        pool.close().await;
        let mut url = url::Url::parse(&self.url).unwrap();
        url.set_path("english");
        self.url = url.into();
        self
    }

    pub(super) fn checkpoint_file(&self) -> PathBuf {
        self.folder().join("checkpoints")
    }

    pub(super) fn checkpoints(&self) -> BTreeMap<i64, Vec<String>> {
        checkpoints::read(&self.checkpoint_file()).unwrap()
    }

    pub(super) async fn open_audit(&self) -> Audit {
        let db = Db::open(&self.url).await.unwrap();
        Audit::new(
            db,
            Clock::start(),
            ChainCheckpoints::new(Some(self.checkpoint_file())),
        )
    }

    /// As the owner of the store could: with its guards removed.
    pub(super) async fn tamper(&self, statements: &str) {
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let file = console_file(std::path::Path::new(path));
            let pool = sqlx::SqlitePool::connect(&format!("sqlite:{}", file.display()))
                .await
                .unwrap();
            let guards = "DROP TRIGGER IF EXISTS audit_entries_no_delete; DROP TRIGGER IF EXISTS audit_entries_no_update;";
            sqlx::raw_sql(guards).execute(&pool).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
                .execute(&pool)
                .await
                .unwrap();
            pool.close().await;
        } else {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            let guards = "DROP TRIGGER IF EXISTS audit_entries_no_change ON audit_entries;";
            sqlx::raw_sql(guards).execute(&pool).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
                .execute(&pool)
                .await
                .unwrap();
            pool.close().await;
        }
    }
}

pub(super) fn entry(number: i64) -> Entry {
    let actor = Actor {
        id: format!("p{}", number % 3),
        name: "ada".to_owned(),
        role: Some("operator".to_owned()),
    };
    Entry {
        subject: EntrySubject {
            backend: Some("cache".to_owned()),
            resource: Some(format!("tenant_{}:r{number}", number % 5)),
            ..EntrySubject::default()
        },
        reason: Some(format!("a reason, number {number}")),
        after: Some(serde_json::json!({"number": number})),
        ..Entry::new(Action::ForceUnlock, "released", actor, Origin::default())
    }
}

pub(super) async fn fill(audit: &Audit, rows: i64) {
    for number in 1..=rows {
        audit.append(entry(number)).await.unwrap();
    }
}
