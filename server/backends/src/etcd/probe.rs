//! Version, member, and account permissions. Read-only: write permission is read from the
//! account's roles.

use domain::backend::AccountPermission;
use domain::escape;
use domain::reported::Reported;
use etcd_client::{GetOptions, StatusResponse};

use super::EtcdBackend;
use super::connection::Login;
use super::error::{EtcdError, EtcdErrorKind};
use super::record::prefix_end;
use crate::{BackendError, Probe};

/// `WRITE` and `READWRITE` of etcd's permissions.
const MAY_WRITE: [i32; 2] = [1, 2];
/// This role has every permission, without listing them.
const ROOT: &str = "root";

impl EtcdBackend {
    pub(super) async fn probe_server(&self) -> Result<Probe, BackendError> {
        let version = match self
            .link
            .call(|client| async move { client.maintenance_client().status().await })
            .await
        {
            Ok(status) => Reported::Value(describe(&status)),
            Err(fault) if fault.kind == EtcdErrorKind::Denied => {
                Reported::unknown("etcd does not report it to this account")
            }
            Err(fault) => return Err(fault.error),
        };
        let mut rights = Vec::new();
        let mut readable = false;
        for prefix in &self.link.settings.prefixes {
            let allowed = self.may_read(prefix).await?;
            readable |= allowed;
            let prefix = escape::text(prefix);
            rights.push(AccountPermission {
                what: format!("read the keys below {prefix}"),
                allowed: Reported::Value(allowed),
                wanted: true,
                remedy: format!(
                    "etcdctl role grant-permission leasehold-watch --prefix=true read '{prefix}'"
                ),
            });
        }
        rights.push(self.may_write(readable).await?);
        Ok(Probe { version, rights })
    }

    async fn may_read(&self, prefix: &[u8]) -> Result<bool, BackendError> {
        let key = if prefix.is_empty() {
            vec![0]
        } else {
            prefix.to_vec()
        };
        let options = GetOptions::new()
            .with_range(prefix_end(prefix))
            .with_keys_only()
            .with_limit(1);
        let read = self.link.call(|client| {
            let (key, options) = (key.clone(), options.clone());
            async move { client.kv_client().get(key, Some(options)).await }
        });
        match read.await {
            Ok(_) => Ok(true),
            Err(fault) if fault.kind == EtcdErrorKind::Denied => Ok(false),
            Err(fault) => Err(fault.error),
        }
    }

    async fn may_write(&self, readable: bool) -> Result<AccountPermission, BackendError> {
        let login = self.link.connected().await.map_err(|fault| fault.error)?.login;
        // Without a login, etcd answers a read only if authentication is off or the client
        // certificate names a user.
        let off =
            login == Login::Off || (login == Login::None && readable && !self.link.settings.certificate);
        if off {
            return Ok(AccountPermission {
                what: "write keys: authentication is off, so anyone who reaches etcd may write".to_owned(),
                allowed: Reported::Value(true),
                wanted: false,
                remedy: "Create users and run `etcdctl auth enable`; docs/backends/etcd.md has the commands."
                    .to_owned(),
            });
        }
        let right = |allowed, remedy: String| AccountPermission {
            what: "write keys".to_owned(),
            allowed,
            wanted: false,
            remedy,
        };
        let Some(user) = self.link.settings.user.as_ref() else {
            let why = "the certificate names the user, whose roles Leasehold cannot read";
            return Ok(right(
                Reported::unknown(why),
                "Check its roles: etcdctl user get --detail NAME".to_owned(),
            ));
        };
        let answer = tokio::time::timeout(self.link.settings.timeout, self.writing_role(&user.name)).await;
        Ok(
            match answer.unwrap_or_else(|_| Err(EtcdError::no_answer(self.link.settings.timeout_ms()))) {
                Ok(None) => right(Reported::Value(false), String::new()),
                Ok(Some(role)) => {
                    let remedy =
                        format!("List its write permissions and revoke them: etcdctl role get {role}");
                    right(Reported::Value(true), remedy)
                }
                Err(fault) => {
                    let remedy = format!("Check its roles: etcdctl user get --detail {}", user.name);
                    right(
                        Reported::Unknown(format!("its roles could not be read: {}", fault.error).into()),
                        remedy,
                    )
                }
            },
        )
    }

    /// A role of this user with a write permission. etcd lets every user read its own roles.
    async fn writing_role(&self, user: &str) -> Result<Option<String>, EtcdError> {
        let ask = |client: etcd_client::Client| async move { client.auth_client().user_get(user).await };
        let answer = self.link.call(ask).await?;
        for role in answer.roles() {
            if role == ROOT {
                return Ok(Some(role.clone()));
            }
            let role_of = self
                .link
                .call(|client| async move { client.auth_client().role_get(role).await })
                .await?;
            if role_of
                .permissions()
                .iter()
                .any(|permission| MAY_WRITE.contains(&permission.get_type()))
            {
                return Ok(Some(role.clone()));
            }
        }
        Ok(None)
    }
}

/// `3.4.23 (member 8e9e05c52164694d, leader, term 2)`
fn describe(status: &StatusResponse) -> String {
    let member = status.header().map_or(0, etcd_client::ResponseHeader::member_id);
    let part = if status.is_learner() {
        "learner"
    } else if status.leader() == 0 {
        "no leader known"
    } else if status.leader() == member {
        "leader"
    } else {
        "follower"
    };
    format!(
        "{} (member {member:x}, {part}, term {})",
        status.version(),
        status.raft_term()
    )
}
