//! A record in a throwaway store, and ways around its guards for those who would tamper with it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use domain::audit::Action;
use leasehold::audit::{Actor, Audit, Entry, Heads, Origin, Subject, heads};
use leasehold::clock::Clock;
use leasehold::db::{Db, console_file};
use leasehold::throwaway::{Postgres, PostgresOptions, Throwaway};
use sqlx::AssertSqlSafe;

pub(super) struct Home {
    pub(super) url: String,
    folder: tempfile::TempDir,
    _postgres: Option<Postgres>,
}

impl Home {
    pub(super) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            url: format!("sqlite:{}", folder.path().join("leasehold.db").display()),
            folder,
            _postgres: None,
        }
    }

    pub(super) async fn postgres() -> Self {
        let options = PostgresOptions {
            fast: true,
            ..Default::default()
        };
        let postgres = Throwaway::postgres(options).await.unwrap();
        Self {
            url: postgres.superuser_url(),
            folder: tempfile::tempdir().unwrap(),
            _postgres: Some(postgres),
        }
    }

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

    pub(super) fn heads_file(&self) -> PathBuf {
        self.folder.path().join("heads")
    }

    pub(super) fn heads(&self) -> BTreeMap<i64, Vec<String>> {
        heads::read(&self.heads_file()).unwrap()
    }

    pub(super) async fn open(&self) -> Audit {
        let db = Db::open(&self.url).await.unwrap();
        Audit::new(db, Clock::start(), Heads::new(Some(self.heads_file())))
    }

    /// As whoever owns the store could: with its guards taken away.
    pub(super) async fn tamper(&self, statements: &str) {
        if let Some(path) = self.url.strip_prefix("sqlite:") {
            let file = console_file(std::path::Path::new(path));
            let pool = sqlx::SqlitePool::connect(&format!("sqlite:{}", file.display()))
                .await
                .unwrap();
            let guards = "DROP TRIGGER IF EXISTS audit_rows_stay; DROP TRIGGER IF EXISTS audit_rows_stand;";
            sqlx::raw_sql(guards).execute(&pool).await.unwrap();
            sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
                .execute(&pool)
                .await
                .unwrap();
            pool.close().await;
        } else {
            let pool = sqlx::PgPool::connect(&self.url).await.unwrap();
            let guards = "DROP TRIGGER IF EXISTS audit_rows_stand ON audit_rows;";
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
        subject: Subject {
            backend: Some("cache".to_owned()),
            resource: Some(format!("tenant_{}:r{number}", number % 5)),
            ..Subject::default()
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
