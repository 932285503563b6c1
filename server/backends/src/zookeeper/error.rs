//! Error of one call, and whether a retry can help.

use domain::escape;
use zookeeper_client::Error;

use crate::BackendError;
use crate::owner_value::cut;

/// Longest path in an error, in characters.
const PATH_CHARS_MAX: usize = 400;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZookeeperErrorKind {
    /// Connection, session or server: a new session may work.
    Transport,
    NoNode,
    /// The node's ACL.
    NoAuth,
    /// The server is older than the operation.
    Unimplemented,
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct ZookeeperError {
    pub(super) kind: ZookeeperErrorKind,
    pub(super) error: BackendError,
}

impl ZookeeperError {
    pub(super) fn new(kind: ZookeeperErrorKind, error: BackendError) -> Self {
        Self { kind, error }
    }

    pub(super) fn no_answer(after_ms: i64) -> Self {
        let after_ms = u64::try_from(after_ms).unwrap_or(0);
        Self::new(ZookeeperErrorKind::Transport, BackendError::NoAnswer { after_ms })
    }

    pub(super) fn is_no_node(&self) -> bool {
        self.kind == ZookeeperErrorKind::NoNode
    }

    pub(super) fn is_hidden(&self) -> bool {
        self.kind == ZookeeperErrorKind::NoAuth
    }

    /// A permission error with the node and the command that grants it.
    pub(super) fn on_path(self, path: &str) -> Self {
        if !self.is_hidden() {
            return self;
        }
        let path = escape::text(path.as_bytes());
        let path = cut(&path, PATH_CHARS_MAX);
        Self::new(
            self.kind,
            BackendError::Denied {
                detail: format!("the ACL of {path} hides its children from this account"),
                remedy: read_remedy(&path),
            },
        )
    }
}

impl From<Error> for ZookeeperError {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NoNode => ZookeeperErrorKind::NoNode,
            Error::NoAuth => ZookeeperErrorKind::NoAuth,
            Error::Unimplemented => ZookeeperErrorKind::Unimplemented,
            Error::NoHosts
            | Error::Timeout
            | Error::SessionExpired
            | Error::SessionMoved
            | Error::ConnectionLoss
            | Error::ClientClosed
            | Error::Throttled
            | Error::Custom(_) => ZookeeperErrorKind::Transport,
            _ => ZookeeperErrorKind::Other,
        };
        let error = match error {
            Error::AuthFailed => BackendError::Denied {
                detail: "ZooKeeper refused the authentication".to_owned(),
                remedy:
                    "Check `user` and `password`, and that the digest provider is enabled on the servers."
                        .to_owned(),
            },
            Error::NoAuth => BackendError::Denied {
                detail: "the node's ACL does not allow it".to_owned(),
                remedy: read_remedy("PATH"),
            },
            error if kind == ZookeeperErrorKind::Transport => BackendError::Unreachable {
                detail: error.to_string(),
            },
            error => BackendError::Protocol {
                detail: error.to_string(),
            },
        };
        Self::new(kind, error)
    }
}

pub(super) fn read_remedy(path: &str) -> String {
    format!(
        "Add the account to the ACL of {path} and of the nodes below it: \
         setAcl -R {path} <the present ACL>,digest:leasehold-watch:<digest>:r"
    )
}
