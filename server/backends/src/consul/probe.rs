//! Version, and the permissions of the token. Read-only.

use domain::backend::AccountPermission;
use domain::reported::Reported;
use reqwest::Method;
use serde::Deserialize;

use super::ConsulBackend;
use super::acl::{self, Permissions};
use super::error::{ConsulError, ConsulErrorKind};
use crate::{BackendError, Probe};

const UNREPORTED: &str = "this Consul does not report the permissions of a token";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Agent {
    config: AgentConfig,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct AgentConfig {
    version: String,
    #[serde(default)]
    datacenter: String,
    #[serde(default)]
    server: bool,
}

impl ConsulBackend {
    pub(super) async fn probe_agent(&self) -> Result<Probe, BackendError> {
        let permissions = acl::permissions(&self.http).await.map_err(|fault| fault.error)?;
        Ok(Probe {
            version: self.version().await.map_err(|fault| fault.error)?,
            rights: self.rights(&permissions),
        })
    }

    /// `1.8.7 (server, dc1)`
    async fn version(&self) -> Result<Reported<String>, ConsulError> {
        let url = self.http.url(&["v1", "agent", "self"], &[]);
        match self.http.json::<Agent>(self.http.request(Method::GET, url)).await {
            Ok(Agent { config }) => {
                let part = if config.server { "server" } else { "client" };
                Ok(Reported::Value(format!(
                    "{} ({part}, {})",
                    config.version, config.datacenter
                )))
            }
            Err(fault) if fault.kind == ConsulErrorKind::Denied => Ok(Reported::unknown(
                "the token may not read the agent: agent_prefix with policy read",
            )),
            Err(fault) => Err(fault),
        }
    }

    fn rights(&self, permissions: &Permissions) -> Vec<AccountPermission> {
        let right = |what: String, allowed, wanted, remedy: String| AccountPermission {
            what,
            allowed,
            wanted,
            remedy,
        };
        let read_sessions = |allowed| {
            let remedy = "Add to the token's policy: session_prefix \"\" { policy = \"read\" }";
            right("read sessions".to_owned(), allowed, true, remedy.to_owned())
        };
        match permissions {
            Permissions::Off => vec![right(
                "write keys: the ACL system is off, so anyone who reaches Consul may write".to_owned(),
                Reported::Value(true),
                false,
                "Turn ACLs on; docs/backends/consul.md has the policies.".to_owned(),
            )],
            Permissions::Unknown => vec![read_sessions(Reported::unknown(UNREPORTED))],
            Permissions::Known { prefixes, sessions } => {
                let mut rights = Vec::new();
                for permission in prefixes {
                    let prefix = &permission.prefix;
                    rights.push(right(
                        format!("read the keys below {prefix}"),
                        Reported::Value(permission.read),
                        true,
                        acl::read_rule(prefix),
                    ));
                    rights.push(right(
                        format!("write the keys below {prefix}"),
                        Reported::Value(permission.write),
                        false,
                        format!(
                            "Replace the policy's rule by: key_prefix \"{prefix}\" {{ policy = \"read\" }}"
                        ),
                    ));
                }
                rights.push(read_sessions(Reported::Value(*sessions)));
                rights
            }
        }
    }
}
