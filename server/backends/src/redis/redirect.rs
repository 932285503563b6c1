//! The answers MOVED and ASK of a cluster's node: another node has the key. Pure.

use ::redis::{RedisError, ServerError, ServerErrorKind};

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Redirect {
    /// Only for the next command, after `ASKING`: the slot is being moved.
    pub(super) is_ask: bool,
    /// Empty: the host that answered.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Redirect {
    /// `None`: another error.
    pub(super) fn from_server(error: &ServerError) -> Option<Self> {
        Self::parse(error.kind()?, error.details()?)
    }

    pub(super) fn from_client(error: &RedisError) -> Option<Self> {
        let ::redis::ErrorKind::Server(kind) = error.kind() else {
            return None;
        };
        Self::parse(kind, error.detail()?)
    }

    /// `text`: `1234 127.0.0.1:7001`.
    fn parse(kind: ServerErrorKind, text: &str) -> Option<Self> {
        let is_ask = match kind {
            ServerErrorKind::Moved => false,
            ServerErrorKind::Ask => true,
            _ => return None,
        };
        let (host, port) = text.split_ascii_whitespace().nth(1)?.rsplit_once(':')?;
        Some(Self {
            is_ask,
            host: host.to_owned(),
            port: port.parse().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_and_ask_name_the_node() {
        // An IPv6 address has colons of its own; an empty host is the one that answered.
        let read = |kind, text| Redirect::parse(kind, text);
        let moved = read(ServerErrorKind::Moved, "3999 127.0.0.1:6381").unwrap();
        assert_eq!(
            (moved.is_ask, moved.host.as_str(), moved.port),
            (false, "127.0.0.1", 6381)
        );
        let ask = read(ServerErrorKind::Ask, "3999 ::1:6381").unwrap();
        assert_eq!((ask.is_ask, ask.host.as_str(), ask.port), (true, "::1", 6381));
        assert_eq!(read(ServerErrorKind::Moved, "3999 :7").unwrap().host, "");
        assert_eq!(read(ServerErrorKind::Moved, "3999"), None);
        assert_eq!(read(ServerErrorKind::TryAgain, "3999 a:1"), None);
    }
}
