//! A throwaway etcd cluster: members that elect a leader. Each member has the faults of a server of its own.

use std::{io, path::PathBuf, time::Duration};

use tokio::{process::Command, time::sleep};

use super::{Etcd, EtcdOptions, INSTALL, Member, PeerLinks, WHAT};
use crate::{StartError, binaries, ports, server::PORT_ATTEMPTS};

const POLL: Duration = Duration::from_millis(20);
const POLLS_MAX: u32 = 1_500;

/// A running cluster.
#[derive(Debug)]
pub struct EtcdCluster {
    pub members: Vec<Etcd>,
    links: Option<PeerLinks>,
    ctl: PathBuf,
}

impl EtcdCluster {
    pub(crate) async fn start(members: usize, options: EtcdOptions) -> Result<Self, StartError> {
        let mut attempt = 1;
        loop {
            let plan = Plan::new(members, options.has_links).await;
            match Self::start_members(plan.map_err(no_ports)?, options.clone()).await {
                // Another process has taken one since: all members know the ports of all.
                Err(StartError::PortTaken { .. }) if attempt < PORT_ATTEMPTS => attempt += 1,
                started => return started,
            }
        }
    }

    async fn start_members(plan: Plan, options: EtcdOptions) -> Result<Self, StartError> {
        let ctl = binaries::find("etcdctl", INSTALL)?;
        // A member answers once there is a leader, so all of them start at the same time.
        let starts = plan
            .members
            .into_iter()
            .map(|member| Etcd::start_as(options.clone(), Some(member)));
        let members = futures::future::try_join_all(starts).await?;
        Ok(Self {
            members,
            links: plan.links,
            ctl,
        })
    }

    /// The connections between the members, if it was started with [`EtcdOptions::has_links`].
    pub fn links(&self) -> Option<&PeerLinks> {
        self.links.as_ref()
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
        let all: Vec<usize> = (0..self.members.len()).collect();
        self.leader_among(&all).await
    }

    /// The one of these members that leads, once there is one: a member that is cut off may not know yet that it does not.
    ///
    /// # Errors
    /// `TimedOut` without a leader.
    pub async fn leader_among(&self, members: &[usize]) -> io::Result<usize> {
        for _ in 0..POLLS_MAX {
            for &member in members {
                if self.members[member].pid().is_none() {
                    continue;
                }
                let status = self
                    .ctl(&[member], &["endpoint", "status", "--write-out=fields"])
                    .await;
                if status.is_ok_and(|status| is_leader(&status)) {
                    return Ok(member);
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
        let restored = Plan::new(self.members.len(), options.has_links).await;
        let mut restored = restored.map_err(no_ports)?;
        for (plan, member) in restored.members.iter_mut().zip(&self.members) {
            plan.client_port = member.port();
            plan.snapshot = Some(snapshot.clone());
        }
        self.members.clear();
        *self = Self::start_members(restored, options).await?;
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

/// Members that are not started yet, and the links in front of them.
struct Plan {
    members: Vec<Member>,
    links: Option<PeerLinks>,
}

impl Plan {
    async fn new(members: usize, has_links: bool) -> io::Result<Self> {
        let free_ports = || {
            (0..members)
                .map(|_| ports::free_port())
                .collect::<io::Result<Vec<_>>>()
        };
        let (client_ports, peer_ports) = (free_ports()?, free_ports()?);
        let links = match has_links {
            true => Some(PeerLinks::start(&peer_ports).await?),
            false => None,
        };
        let peer_url = |member: usize| {
            let port = links
                .as_ref()
                .map_or(peer_ports[member], |links| links.port(member));
            format!("http://127.0.0.1:{port}")
        };
        let cluster: Vec<String> = (0..members)
            .map(|member| format!("m{member}={}", peer_url(member)))
            .collect();
        let token = client_ports.first().map(|port| format!("throwaway-{port}"));
        let plan = |member: usize| Member {
            name: format!("m{member}"),
            client_port: client_ports[member],
            peer_port: peer_ports[member],
            peer_url: peer_url(member),
            cluster: cluster.join(","),
            token: token.clone().unwrap_or_default(),
            snapshot: None,
        };
        Ok(Self {
            members: (0..members).map(plan).collect(),
            links,
        })
    }
}

fn no_ports(source: io::Error) -> StartError {
    StartError::Io {
        what: WHAT,
        doing: "choose ports",
        source,
    }
}
