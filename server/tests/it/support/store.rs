//! Where a server's data is: a file in a temporary folder, or a Postgres of its own.

use leasehold::throwaway::{Postgres, PostgresOptions, Throwaway};

/// Outlives the servers on it; removed on drop.
pub(crate) struct Store {
    pub(crate) url: String,
    postgres: Option<Postgres>,
    folder: tempfile::TempDir,
}

impl Store {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            url: format!("sqlite:{}", folder.path().join("leasehold.db").display()),
            postgres: None,
            folder,
        }
    }

    pub(crate) async fn postgres() -> Self {
        let options = PostgresOptions {
            fast: true,
            ..Default::default()
        };
        let postgres = Throwaway::postgres(options).await.unwrap();
        Self {
            url: postgres.superuser_url(),
            postgres: Some(postgres),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// The same for another server; it is gone with this one.
    pub(crate) fn beside(&self) -> Self {
        Self {
            url: self.url.clone(),
            postgres: None,
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) const fn is_postgres(&self) -> bool {
        self.postgres.is_some()
    }

    /// Empty, but for the files of a store on SQLite.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }
}
