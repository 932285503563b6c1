//! Version, member, and what this account may do. Changes nothing: whether it may write is read from its roles.

use domain::backend::Right;
use domain::escape;
use domain::known::Known;
use etcd_client::{GetOptions, StatusResponse};

use super::EtcdBackend;
use super::fault::{Fault, Kind};
use super::link::Login;
use super::record::prefix_end;
use crate::backends::{BackendError, Probe};

/// `WRITE` and `READWRITE` of etcd's permissions.
const MAY_WRITE: [i32; 2] = [1, 2];
/// This role may do everything, without permissions of its own.
const ROOT: &str = "root";

impl EtcdBackend {
    pub(super) async fn look(&self) -> Result<Probe, BackendError> {
        let version = match self
            .link
            .call(|client| async move { client.maintenance_client().status().await })
            .await
        {
            Ok(status) => Known::Known(describe(&status)),
            Err(fault) if fault.kind == Kind::Denied => Known::unknown("etcd does not tell this account"),
            Err(fault) => return Err(fault.error),
        };
        let mut rights = Vec::new();
        let mut readable = false;
        for prefix in &self.link.settings.prefixes {
            let allowed = self.may_read(prefix).await?;
            readable |= allowed;
            let prefix = escape::text(prefix);
            rights.push(Right {
                what: format!("read the keys below {prefix}"),
                allowed: Known::Known(allowed),
                wanted: true,
                mend: format!("etcdctl role grant-permission leasehold-watch --prefix=true read '{prefix}'"),
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
            Err(fault) if fault.kind == Kind::Denied => Ok(false),
            Err(fault) => Err(fault.error),
        }
    }

    async fn may_write(&self, readable: bool) -> Result<Right, BackendError> {
        let login = self.link.connected().await.map_err(|fault| fault.error)?.login;
        // Without a login, etcd answers a read only when authentication is off, or when our certificate names a user.
        let off =
            login == Login::Off || (login == Login::None && readable && !self.link.settings.certificate);
        if off {
            return Ok(Right {
                what: "write keys: authentication is off, so anyone who reaches etcd may write".to_owned(),
                allowed: Known::Known(true),
                wanted: false,
                mend: "Make users and run `etcdctl auth enable`; docs/backends/etcd.md has the commands."
                    .to_owned(),
            });
        }
        let right = |allowed, mend: String| Right {
            what: "write keys".to_owned(),
            allowed,
            wanted: false,
            mend,
        };
        let Some(user) = self.link.settings.user.as_ref() else {
            let why = "the certificate names the user, whose roles we cannot ask for";
            return Ok(right(
                Known::unknown(why),
                "Check its roles: etcdctl user get --detail NAME".to_owned(),
            ));
        };
        let answer = tokio::time::timeout(self.link.settings.timeout, self.writing_role(&user.name)).await;
        Ok(
            match answer.unwrap_or_else(|_| Err(Fault::no_answer(self.link.settings.timeout_ms()))) {
                Ok(None) => right(Known::Known(false), String::new()),
                Ok(Some(role)) => {
                    let mend = format!("See what it may write, and revoke it: etcdctl role get {role}");
                    right(Known::Known(true), mend)
                }
                Err(fault) => {
                    let mend = format!("Check its roles: etcdctl user get --detail {}", user.name);
                    right(
                        Known::Unknown(format!("its roles could not be read: {}", fault.error).into()),
                        mend,
                    )
                }
            },
        )
    }

    /// A role of this user that may write something. etcd lets every user read its own roles.
    async fn writing_role(&self, user: &str) -> Result<Option<String>, Fault> {
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
