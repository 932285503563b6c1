//! A throwaway etcd cluster: members that elect a leader. Each member has the faults of a server of its own.

use std::{io, path::PathBuf, time::Duration};

use tokio::{process::Command, time::sleep};

use super::{Etcd, EtcdOptions, INSTALL, Member, WHAT};
use crate::{StartError, binaries, ports};

const POLL: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 1_500;

/// A running cluster.
#[derive(Debug)]
pub struct EtcdCluster {
    pub members: Vec<Etcd>,
    ctl: PathBuf,
}

impl EtcdCluster {
    pub(crate) async fn start(members: usize, options: EtcdOptions) -> Result<Self, StartError> {
        let plans = plans(members).map_err(|source| StartError::Io {
            what: WHAT,
            doing: "choose ports",
            source,
        })?;
        Self::start_members(plans, options).await
    }

    async fn start_members(plans: Vec<Member>, options: EtcdOptions) -> Result<Self, StartError> {
        let ctl = binaries::find("etcdctl", INSTALL)?;
        // A member answers once there is a leader, so all of them start at the same time.
        let starts = plans
            .into_iter()
            .map(|plan| Etcd::start_as(options.clone(), Some(plan)));
        let members = futures::future::try_join_all(starts).await?;
        Ok(Self { members, ctl })
    }

    /// `http://127.0.0.1:port` of each member.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Etcd::endpoint).collect()
    }

    /// `host:port` of each member, separated by commas.
    pub fn addresses(&self) -> String {
        let addresses = self
            .members
            .iter()
            .map(|member| format!("127.0.0.1:{}", member.port()));
        addresses.collect::<Vec<_>>().join(",")
    }

    /// Runs `etcdctl` on these members; returns its output.
    ///
    /// # Errors
    /// It cannot be started, or fails.
    pub async fn ctl(&self, members: &[usize], args: &[&str]) -> io::Result<String> {
        let endpoints: Vec<String> = members
            .iter()
            .map(|member| self.members[*member].endpoint())
            .collect();
        let output = Command::new(&self.ctl)
            .env("ETCDCTL_API", "3")
            .arg(format!("--endpoints={}", endpoints.join(",")))
            .args(args)
            .kill_on_drop(true)
            .output()
            .await?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(io::Error::other(format!("etcdctl {args:?}: {text}")))
    }

    /// Compacts to the current revision, which is returned, and defragments every member, one after the other.
    ///
    /// # Errors
    /// As [`EtcdCluster::ctl`].
    pub async fn compact_and_defragment(&self) -> io::Result<String> {
        let fields = self.ctl(&[0], &["get", "/none", "--write-out=fields"]).await?;
        let revision = fields
            .lines()
            .find_map(|line| line.strip_prefix("\"Revision\" : "))
            .ok_or_else(|| io::Error::other(format!("no revision in {fields}")))?;
        self.ctl(&[0], &["compact", revision, "--physical"]).await?;
        for member in 0..self.members.len() {
            self.ctl(&[member], &["defrag"]).await?;
        }
        Ok(revision.to_owned())
    }

    /// The member that leads, once there is one.
    ///
    /// # Errors
    /// `TimedOut` without a leader.
    pub async fn leader(&self) -> io::Result<usize> {
        for _ in 0..POLLS_MAX {
            for (place, member) in self.members.iter().enumerate() {
                if member.pid().is_none() {
                    continue;
                }
                let status = self
                    .ctl(&[place], &["endpoint", "status", "--write-out=fields"])
                    .await;
                if status.is_ok_and(|status| is_leader(&status)) {
                    return Ok(place);
                }
            }
            sleep(POLL).await;
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Stops all members and starts a cluster of as many from a snapshot, on the same client ports.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn restore(&mut self, snapshot: Vec<u8>, options: EtcdOptions) -> Result<(), StartError> {
        let mut restored = plans(self.members.len()).map_err(|source| StartError::Io {
            what: WHAT,
            doing: "choose ports",
            source,
        })?;
        for (plan, member) in restored.iter_mut().zip(&self.members) {
            plan.client_port = member.port();
            plan.snapshot = Some(snapshot.clone());
        }
        self.members.clear();
        self.members = Self::start_members(restored, options).await?.members;
        Ok(())
    }
}

fn is_leader(status: &str) -> bool {
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(&format!("\"{name}\" : ")).map(str::to_owned))
    };
    let leader = field("Leader");
    leader.is_some_and(|leader| leader != "0" && Some(leader) == field("MemberID"))
}

fn plans(members: usize) -> io::Result<Vec<Member>> {
    let mut plans = Vec::with_capacity(members);
    for number in 0..members {
        let (client_port, peer_port) = (ports::free_port()?, ports::free_port()?);
        plans.push(Member {
            name: format!("m{number}"),
            client_port,
            peer_port,
            peer_url: format!("http://127.0.0.1:{peer_port}"),
            cluster: String::new(),
            token: format!("throwaway-{client_port}"),
            snapshot: None,
        });
    }
    let cluster: Vec<String> = plans
        .iter()
        .map(|plan| format!("{}={}", plan.name, plan.peer_url))
        .collect();
    let (cluster, token) = (cluster.join(","), plans.first().map(|plan| plan.token.clone()));
    for plan in &mut plans {
        plan.cluster.clone_from(&cluster);
        plan.token = token.clone().unwrap_or_default();
    }
    Ok(plans)
}
