//! Asks every member of a cluster for its status, each on a connection of its own, and remembers what one answer does
//! not contain: the last answer of a silent member, and changes of the leader.

mod memory;

use std::time::Duration;

use chrono::{DateTime, Utc};
use config::tls::TlsConfig;
use domain::backend::{ClusterMember, ClusterView, MemberRole};
use domain::reported::Reported;
use etcd_client::{Client, ConnectOptions, Error};
use parking_lot::Mutex;
use runtime::clock::Clock;
use runtime::tls_client::{TlsFileError, client_config};

use self::memory::{ListedMember, Memory};
use crate::call_error::error_text;
use crate::metrics_page::{Tls, read_quota};
use crate::status::MemberStatus;

/// Of one member; a silent one delays the others by no more.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(1);
const AUTH_OFF: &str = "authentication is not enabled";
const SILENT: &str = "it does not answer";

/// How to reach the members.
pub struct ClusterAccess<'a> {
    /// `http://host:port` or `https://host:port`, all with the same scheme.
    pub endpoints: Vec<String>,
    pub options: ConnectOptions,
    /// Used where etcd has authentication off.
    pub without_login: Option<ConnectOptions>,
    pub tls: &'a TlsConfig,
}

/// Reads the state of one cluster.
pub struct ClusterReader {
    options: ConnectOptions,
    without_login: Option<ConnectOptions>,
    tls: Option<Tls>,
    links: Vec<MemberLink>,
    clock: Clock,
    memory: Mutex<Memory>,
}

struct MemberLink {
    endpoint: String,
    client: Mutex<Option<Client>>,
}

impl ClusterReader {
    /// Opens no connection.
    ///
    /// # Errors
    /// A TLS file cannot be used.
    pub fn new(access: ClusterAccess<'_>, clock: Clock) -> Result<Self, TlsFileError> {
        let is_secure = access.endpoints.iter().any(|it| it.starts_with("https://"));
        let tls = match is_secure {
            true => Some(Tls {
                config: client_config(access.tls)?.into(),
                server_name: access.tls.server_name.clone(),
            }),
            false => None,
        };
        let links: Vec<MemberLink> = access.endpoints.into_iter().map(MemberLink::new).collect();
        Ok(Self {
            options: access.options,
            without_login: access.without_login,
            tls,
            memory: Mutex::new(Memory::new(links.len(), clock.now())),
            links,
            clock,
        })
    }

    /// Asks all members at the same time. Takes at most twice the timeout of a member.
    pub async fn read(&self) -> ClusterView {
        let requests = self.links.iter().map(|link| self.read_status(link));
        let answers = futures::future::join_all(requests).await;
        let now = self.clock.now();
        self.memory.lock().record(&answers, now);
        tokio::join!(self.read_list(&answers), self.read_quotas(&answers));
        self.view(&answers, now.wall)
    }

    /// Closes all connections.
    pub fn close(&self) {
        for link in &self.links {
            *link.client.lock() = None;
        }
    }

    async fn read_status(&self, link: &MemberLink) -> Result<MemberStatus, String> {
        let answer = limited(async {
            let mut client = Box::pin(self.client(link)).await?;
            client.status().await
        });
        match Box::pin(answer).await {
            Ok(status) => Ok(MemberStatus::from(&status)),
            Err(why) => {
                *link.client.lock() = None;
                Err(why)
            }
        }
    }

    async fn client(&self, link: &MemberLink) -> Result<Client, Error> {
        if let Some(client) = link.client.lock().clone() {
            return Ok(client);
        }
        let connect =
            |options: &ConnectOptions| Client::connect([link.endpoint.clone()], Some(options.clone()));
        let client = match (connect(&self.options).await, &self.without_login) {
            (Err(error), Some(without)) if error_text(&error).contains(AUTH_OFF) => connect(without).await?,
            (connected, _) => connected?,
        };
        Ok(link.client.lock().get_or_insert(client).clone())
    }

    /// The list of members, from one that answers; the previous list stays if none gives it.
    async fn read_list(&self, answers: &[Result<MemberStatus, String>]) {
        let answering = self.links.iter().zip(answers).find(|(_, answer)| {
            let role = answer.as_ref().map(MemberStatus::role);
            matches!(role, Ok(MemberRole::Leader | MemberRole::Follower))
        });
        let Some((link, _)) = answering else { return };
        let listed = limited(async {
            let mut client = Box::pin(self.client(link)).await?;
            client.member_list().await
        });
        if let Ok(listed) = Box::pin(listed).await {
            let listed = listed.members().iter().map(ListedMember::from).collect();
            self.memory.lock().list = Some(listed);
        }
    }

    /// The quotas that the status does not contain.
    async fn read_quotas(&self, answers: &[Result<MemberStatus, String>]) {
        let now = self.clock.tick();
        let due = |index: usize, answer: &Result<MemberStatus, String>| {
            answer.as_ref().is_ok_and(|status| status.quota_bytes.is_none())
                && self.memory.lock().is_quota_due(index, now)
        };
        let due = answers
            .iter()
            .enumerate()
            .filter(|(index, answer)| due(*index, answer));
        let reads = due.map(|(index, _)| async move {
            let read = read_quota(&self.links[index].endpoint, self.tls.as_ref());
            let no_answer = || Err("its metrics page does not answer".to_owned());
            let quota = tokio::time::timeout(MEMBER_TIMEOUT, read).await;
            self.memory
                .lock()
                .record_quota(index, quota.unwrap_or_else(|_| no_answer()), now);
        });
        futures::future::join_all(reads).await;
    }

    fn view(&self, answers: &[Result<MemberStatus, String>], now: DateTime<Utc>) -> ClusterView {
        let memory = self.memory.lock();
        let leader = answers
            .iter()
            .flatten()
            .find(|status| status.role() == MemberRole::Leader);
        let mut members: Vec<ClusterMember> = answers
            .iter()
            .enumerate()
            .map(|(index, answer)| {
                let endpoint = &self.links[index].endpoint;
                let name = memory.name(index, endpoint).unwrap_or(endpoint).to_owned();
                let answered_at = memory.answered_at(index);
                match answer {
                    Ok(status) => {
                        let quota = status
                            .quota_bytes
                            .map_or_else(|| memory.quota(index), Reported::Value);
                        answering(status, leader, (name, endpoint, answered_at), quota)
                    }
                    Err(why) => silent(name, endpoint, answered_at, why.clone()),
                }
            })
            .collect();
        members.extend(memory.unreached());
        let alarms: Vec<_> = answers
            .iter()
            .flatten()
            .flat_map(|status| &status.alarms)
            .collect();
        for (index, member) in members.iter_mut().enumerate() {
            let id = memory.member_id(index);
            let own_alarms = alarms.iter().filter(|(member_id, _)| Some(*member_id) == id);
            member.alarms = own_alarms.map(|(_, alarm)| alarm.clone()).collect();
            member.alarms.sort_unstable();
            member.alarms.dedup();
        }
        let mut view = ClusterView {
            shard: None,
            asked_at: now,
            age_ms: 0,
            voters: memory.voters(),
            counted_since: memory.counted_since,
            leader_changes: memory.leader_changes,
            leader_changed_at: memory.leader_changed_at,
            members,
        };
        view.sort_members();
        view
    }
}

impl MemberLink {
    fn new(endpoint: String) -> Self {
        Self {
            endpoint,
            client: Mutex::new(None),
        }
    }
}

async fn limited<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    match tokio::time::timeout(MEMBER_TIMEOUT, Box::pin(work)).await {
        Ok(answer) => answer.map_err(|error| error_text(&error)),
        Err(_) => Err(format!("no answer within {} ms", MEMBER_TIMEOUT.as_millis())),
    }
}

fn answering(
    status: &MemberStatus,
    leader: Option<&MemberStatus>,
    (name, address, answered_at): (String, &str, Option<DateTime<Utc>>),
    quota_bytes: Reported<u64>,
) -> ClusterMember {
    let behind_leader = match leader {
        Some(leader) => Reported::Value(leader.committed.saturating_sub(status.committed)),
        None => Reported::unknown("the leader does not answer"),
    };
    ClusterMember {
        name,
        address: address.to_owned(),
        fault: None,
        answered_at,
        role: Reported::Value(status.role()),
        version: Reported::Value(status.version.clone()),
        size_bytes: Reported::Value(status.size_bytes),
        quota_bytes,
        behind_leader,
        unapplied: Reported::Value(status.committed.saturating_sub(status.applied)),
        alarms: Vec::new(),
    }
}

fn silent(name: String, address: &str, answered_at: Option<DateTime<Utc>>, why: String) -> ClusterMember {
    ClusterMember {
        fault: Some(why),
        ..memory::unknown(name, address, answered_at, SILENT)
    }
}

#[cfg(test)]
mod tests;
