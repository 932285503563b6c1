//! Version, and the permissions of the account. Read-only: write permissions are read from the
//! ACLs of the configured paths.

use domain::backend::AccountPermission;
use domain::reported::Reported;
use zookeeper_client::{Acl, Permission};

use super::ZookeeperBackend;
use super::error::{ZookeeperError, read_remedy};
use crate::{BackendError, Probe};

impl ZookeeperBackend {
    pub(super) async fn probe_server(&self) -> Result<Probe, BackendError> {
        let mut rights = Vec::new();
        let mut open_to_write = None;
        for path in self.link.settings.configured() {
            let listed = self
                .link
                .call(|client| async move { client.get_children(path).await })
                .await;
            let allowed = match listed {
                Ok(_) => Reported::Value(true),
                Err(fault) if fault.is_hidden() => Reported::Value(false),
                Err(fault) if fault.is_no_node() => {
                    self.check_chroot().await?;
                    Reported::Unknown(format!("{path} does not exist").into())
                }
                Err(fault) => return Err(fault.error),
            };
            rights.push(AccountPermission {
                what: format!("read the nodes below {path}"),
                allowed,
                wanted: true,
                remedy: format!("{}. If it does not exist, correct `paths`.", read_remedy(path)),
            });
            let writable = self.may_write(path).await.map_err(|fault| fault.error)?;
            open_to_write = match (open_to_write, writable) {
                (Some(Reported::Value(true)), _) => Some(Reported::Value(true)),
                (_, writable) => Some(writable),
            };
        }
        if let Some(allowed) = open_to_write {
            rights.push(AccountPermission {
                what: "change the nodes of `paths`, by their ACLs".to_owned(),
                allowed,
                wanted: false,
                remedy:
                    "Let the lock clients create their nodes with an ACL that gives this account READ only; \
                         docs/backends/zookeeper.md has the commands."
                        .to_owned(),
            });
        }
        Ok(Probe {
            version: self.version().await,
            rights,
        })
    }

    /// Nodes have ACLs of their own and inherit none, so the result is valid for this path only.
    async fn may_write(&self, path: &str) -> Result<Reported<bool>, ZookeeperError> {
        let acl = self
            .link
            .call(|client| async move { client.get_acl(path).await })
            .await;
        match acl {
            Ok((acl, _)) => Ok(Reported::Value(acl.iter().any(|entry| self.lets_write(entry)))),
            Err(fault) if fault.is_no_node() => {
                Ok(Reported::Unknown(format!("{path} does not exist").into()))
            }
            Err(fault) if fault.is_hidden() => Ok(Reported::Value(false)),
            Err(fault) => Err(fault),
        }
    }

    fn lets_write(&self, entry: &Acl) -> bool {
        let changes = [
            Permission::WRITE,
            Permission::CREATE,
            Permission::DELETE,
            Permission::ADMIN,
        ];
        let is_ours = match (entry.scheme(), self.link.settings.digest()) {
            ("world", _) => true,
            ("digest", Some((user, _))) => entry.id().split(':').next() == Some(user),
            _ => false,
        };
        is_ours
            && changes
                .iter()
                .any(|permission| entry.permission().has(*permission))
    }

    /// `3.8.0 (standalone)`
    async fn version(&self) -> Reported<String> {
        let Some(answer) = self.link.command(b"srvr").await else {
            return Reported::unknown("no server answered the command srvr");
        };
        let line = |name: &str| {
            answer
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(str::trim)
        };
        let Some(version) = line("Zookeeper version:") else {
            return Reported::unknown("the command srvr is not in the servers' 4lw.commands.whitelist");
        };
        let version = version.split(['-', ',']).next().unwrap_or(version);
        match line("Mode:") {
            Some(mode) => Reported::Value(format!("{version} ({mode})")),
            None => Reported::Value(version.to_owned()),
        }
    }
}
