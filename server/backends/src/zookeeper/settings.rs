//! Validated configuration of one ZooKeeper backend: servers, chroot, paths, account. Opens no
//! connection, so an unreachable server is no error here.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::duration::millis;
use secrecy::{ExposeSecret, SecretString};
use zookeeper_client::Client;

use crate::BackendError;
use crate::error::misconfigured;
use config::BackendConfig;
use config::zookeeper::ZookeeperConfig;

/// Asked of the ensemble, which may grant another one. A node of our own that a forced unlock
/// could not remove is gone after it.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub(super) struct ZookeeperSettings {
    /// `host:port,host:port/chroot`
    pub(super) connect: String,
    /// The addresses alone.
    pub(super) servers: Vec<String>,
    /// `None`: names are absolute.
    pub(super) chroot: Option<String>,
    /// No path is below another one, so that no lock is found twice.
    pub(super) paths: Vec<String>,
    /// The configured paths that are below one of them: read where an ACL hides the nodes above.
    nested: Vec<String>,
    pub(super) user: Option<ZookeeperUser>,
    pub(super) timeout: Duration,
    pub(super) requests_per_second: u32,
}

#[derive(Debug, Clone)]
pub(super) struct ZookeeperUser {
    pub(super) name: String,
    password: Option<SecretString>,
}

impl ZookeeperSettings {
    pub(super) fn check(config: &BackendConfig, zookeeper: &ZookeeperConfig) -> Result<Self, BackendError> {
        if zookeeper.paths.is_empty() {
            return Err(misconfigured(
                "it has no paths",
                "Set `paths`, e.g. [\"/locks\"].",
            ));
        }
        let (servers, chroot) = match zookeeper.connect.split_once('/') {
            Some((servers, chroot)) => (servers, Some(format!("/{chroot}"))),
            None => (zookeeper.connect.as_str(), None),
        };
        let user = config.user.clone().map(|name| ZookeeperUser {
            name,
            password: config.password.clone(),
        });
        Ok(Self {
            connect: zookeeper.connect.clone(),
            servers: servers.split(',').map(str::to_owned).collect(),
            chroot: chroot.filter(|chroot| chroot != "/"),
            nested: nested(&zookeeper.paths),
            paths: outermost(&zookeeper.paths),
            user,
            timeout: config.timeout,
            requests_per_second: zookeeper.requests_per_second,
        })
    }

    /// The same servers with the account of forced unlocks; `None` if not configured.
    pub(super) fn for_unlocks(
        config: &BackendConfig,
        zookeeper: &ZookeeperConfig,
    ) -> Result<Option<Self>, BackendError> {
        let Some(name) = zookeeper.unlock_user.clone() else {
            return Ok(None);
        };
        let mut settings = Self::check(config, zookeeper)?;
        settings.user = Some(ZookeeperUser {
            name,
            password: zookeeper.unlock_password.clone(),
        });
        Ok(Some(settings))
    }

    pub(super) async fn connect(&self) -> Result<Client, zookeeper_client::Error> {
        let mut connector = Client::connector()
            .with_session_timeout(SESSION_TIMEOUT)
            .with_connection_timeout(self.timeout)
            .with_fail_eagerly();
        if let Some((user, password)) = self.digest() {
            let credentials = format!("{user}:{}", password.expose_secret());
            connector = connector.with_auth("digest", credentials.as_bytes());
        }
        connector.connect(&self.connect).await
    }

    /// Whether an account authenticates: a user without a password connects as anyone.
    pub(super) fn digest(&self) -> Option<(&str, &SecretString)> {
        let user = self.user.as_ref()?;
        Some((&user.name, user.password.as_ref()?))
    }

    pub(super) fn timeout_ms(&self) -> i64 {
        millis(self.timeout)
    }

    /// All configured paths.
    pub(super) fn configured(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().chain(&self.nested).map(String::as_str)
    }

    pub(super) fn is_configured(&self, path: &str) -> bool {
        self.configured().any(|configured| configured == path)
    }

    /// The outermost of the configured paths below `hidden`.
    pub(super) fn configured_below(&self, hidden: &str) -> Vec<String> {
        let is_below = |path: &&String| path.as_str() != hidden && is_at_or_below(path, hidden);
        let below: Vec<String> = self.nested.iter().filter(is_below).cloned().collect();
        outermost(&below)
    }

    /// The configured path that is at or above `path`.
    pub(super) fn covers(&self, path: &str) -> bool {
        self.paths.iter().any(|outer| is_at_or_below(path, outer))
    }
}

/// The path of a child.
pub(super) fn join(parent: &str, child: &str) -> String {
    match parent {
        "/" => format!("/{child}"),
        _ => format!("{parent}/{child}"),
    }
}

/// The path of the parent and the child's name; `None` for the root.
pub(super) fn split(path: &str) -> Option<(&str, &str)> {
    match path.rsplit_once('/')? {
        (_, "") => None,
        ("", child) => Some(("/", child)),
        parts => Some(parts),
    }
}

fn is_at_or_below(path: &str, outer: &str) -> bool {
    let rest = path.strip_prefix(if outer == "/" { "" } else { outer });
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The paths that are not below another one.
fn outermost(paths: &[String]) -> Vec<String> {
    let mut sorted = paths.to_vec();
    sorted.sort_by_key(String::len);
    let mut outermost_paths: Vec<String> = Vec::with_capacity(sorted.len());
    for path in sorted {
        if !outermost_paths.iter().any(|outer| is_at_or_below(&path, outer)) {
            outermost_paths.push(path);
        }
    }
    outermost_paths
}

/// The paths that are below another one.
fn nested(paths: &[String]) -> Vec<String> {
    let outermost_paths = outermost(paths);
    let nested = paths.iter().filter(|path| !outermost_paths.contains(path));
    let distinct: BTreeSet<String> = nested.cloned().collect();
    distinct.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_another_is_read_once() {
        // A path twice, one inside another, and one that only begins like it.
        let paths = ["/locks/a", "/locks", "/locks", "/locks-old"].map(str::to_owned);
        assert_eq!(outermost(&paths), ["/locks", "/locks-old"]);
        assert_eq!(outermost(&["/a".to_owned(), "/".to_owned()]), ["/"]);
        assert_eq!(nested(&paths), ["/locks/a"]);
    }

    #[test]
    fn paths_are_joined_and_split_at_the_root_too() {
        // The root has no parent, and its children no second slash.
        assert_eq!(
            (join("/", "a"), join("/a", "b")),
            ("/a".to_owned(), "/a/b".to_owned())
        );
        assert_eq!(split("/a"), Some(("/", "a")));
        assert_eq!(split("/a/b"), Some(("/a", "b")));
        assert_eq!(split("/"), None);
    }
}
