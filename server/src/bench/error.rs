//! What can keep a figure from being measured. A missed goal is no error.

use crate::backends::BackendError;
use crate::identity::IdentityError;
use crate::lease::LeaseOpenError;
use crate::serve::ServeError;
use crate::throwaway::StartError;

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error("the store of the lease service: {0}")]
    Store(#[from] LeaseOpenError),
    #[error("the store of people: {0}")]
    People(#[from] crate::db::DbError),
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
    /// A peer, or our own server, said something that is no measurement.
    #[error("{what} answered something else than asked: {answer}")]
    Answer { what: &'static str, answer: String },
    #[error("a pass saw {seen} of {keys} keys")]
    Missed { seen: u64, keys: u64 },
    #[error("a client of the load ended before it had measured anything")]
    NoClient,
}

impl BenchError {
    pub(super) fn answer(what: &'static str, answer: impl Into<String>) -> Self {
        Self::Answer {
            what,
            answer: answer.into(),
        }
    }

    pub(super) fn io(what: &'static str) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}
