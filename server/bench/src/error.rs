//! Errors that prevent a measurement. A missed goal is not an error.

use backends::BackendError;
use lease::LeaseOpenError;
use leasehold::identity::IdentityError;
use leasehold::serve::ServeError;
use testkit::StartError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("the store of the lease service: {0}")]
    Store(#[from] LeaseOpenError),
    #[error("the store of users: {0}")]
    Users(#[from] runtime::db::DbError),
    #[error("no token for the clients: {0}")]
    Token(#[from] IdentityError),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error("the {what} of the load generator failed: {source}")]
    Io {
        what: &'static str,
        source: std::io::Error,
    },
    #[error("{0}")]
    Sql(#[from] sqlx::Error),
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    #[error("{0}")]
    Http(#[from] reqwest::Error),
    #[error("{0}")]
    Etcd(#[from] etcd_client::Error),
    #[error("{0}")]
    Zookeeper(#[from] zookeeper_client::Error),
    #[error("cannot run redis-cli ({0}); install it with: apt-get install -y redis-tools")]
    Cli(std::io::Error),
    #[error("could not write the commands for redis-cli: {0}")]
    Commands(std::io::Error),
    /// Unexpected output of a peer or our own server.
    #[error("{what} gave an unexpected answer: {answer}")]
    Answer { what: &'static str, answer: String },
    #[error("a scan found {seen} of {keys} keys")]
    Missed { seen: u64, keys: u64 },
    #[error("a load client ended before it had measured anything")]
    NoClient,
}

impl BenchError {
    pub(super) fn bad_answer(what: &'static str, answer: impl Into<String>) -> Self {
        Self::Answer {
            what,
            answer: answer.into(),
        }
    }

    pub(super) fn io(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
