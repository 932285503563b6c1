//! Members of a replicated backend, as each of them reports itself: whether a majority answers, and what is wrong with
//! one member.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::format;
use crate::reported::Reported;

/// etcd refuses all writes at its quota: from this share of it on, in per cent, a member needs attention.
const QUOTA_WARN_PERCENT: u64 = 75;
/// Entries of the log that a member may lag. etcd refuses requests at 5,000 (`maxGapBetweenApplyAndCommitIndex`).
const LAG_MAX: u64 = 1_000;

crate::wire_enum! {
    /// What a member does in its cluster.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum MemberRole {
        Leader = "leader",
        Follower = "follower",
        /// It has no vote.
        Learner = "learner",
        /// It has a vote and knows no leader: it is cut off, or there is no majority.
        NoLeader = "no_leader",
    }
}

/// A cluster as its members reported it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterView {
    /// Of a sharded lease store: index of the shard that the cluster holds.
    pub shard: Option<u32>,
    /// When the members were last asked.
    pub asked_at: DateTime<Utc>,
    /// Time since then, when it is shown.
    pub age_ms: i64,
    /// Members with a vote.
    pub voters: Reported<u64>,
    /// Begin of the count of leader changes.
    pub counted_since: DateTime<Utc>,
    pub leader_changes: u64,
    pub leader_changed_at: Option<DateTime<Utc>>,
    pub members: Vec<ClusterMember>,
}

/// One member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterMember {
    /// As in the list of members; its address while that is unknown.
    pub name: String,
    pub address: String,
    /// Why it does not answer.
    pub fault: Option<String>,
    /// Its last answer to this server.
    pub answered_at: Option<DateTime<Utc>>,
    pub role: Reported<MemberRole>,
    pub version: Reported<String>,
    /// Of its database, on disk.
    pub size_bytes: Reported<u64>,
    pub quota_bytes: Reported<u64>,
    /// Committed entries of the leader's log that it does not know to be committed.
    pub behind_leader: Reported<u64>,
    /// Committed entries that it has not applied.
    pub unapplied: Reported<u64>,
    /// `NOSPACE`, `CORRUPT`.
    pub alarms: Vec<String>,
}

/// What is wrong with a member, and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberProblem {
    /// Otherwise a warning.
    pub is_critical: bool,
    pub text: String,
    pub remedy: &'static str,
}

impl MemberProblem {
    const fn critical(text: String, remedy: &'static str) -> Self {
        Self {
            is_critical: true,
            text,
            remedy,
        }
    }

    const fn warning(text: String, remedy: &'static str) -> Self {
        Self {
            is_critical: false,
            text,
            remedy,
        }
    }
}

/// What the members that answer are able to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// This many more may fail.
    Majority {
        spare: u64,
    },
    /// Too few answer, or those that answer know no leader: nothing is committed.
    NoMajority,
    Unknown,
}

impl ClusterMember {
    /// The worst problem first.
    pub fn problems(&self) -> Vec<MemberProblem> {
        let mut problems = Vec::new();
        if let Some(why) = &self.fault {
            let remedy = "Check that it runs and that this server reaches it.";
            problems.push(MemberProblem::critical(why.clone(), remedy));
        }
        for alarm in &self.alarms {
            problems.push(MemberProblem::critical(
                format!("alarm {alarm}"),
                alarm_remedy(alarm),
            ));
        }
        if self.role.known() == Some(&MemberRole::NoLeader) {
            let remedy = "Check that a majority of the members run and reach each other.";
            problems.push(MemberProblem::critical("it knows no leader".to_owned(), remedy));
        }
        if let Some(percent) = self
            .quota_percent()
            .filter(|percent| *percent >= QUOTA_WARN_PERCENT)
        {
            let remedy = "Compact and defragment it, or raise --quota-backend-bytes; at the quota etcd refuses all writes.";
            let text = format!("{percent} % of the quota is used");
            problems.push(MemberProblem::warning(text, remedy));
        }
        for (lag, what) in [
            (&self.behind_leader, "behind the leader"),
            (&self.unapplied, "not applied yet"),
        ] {
            if let Some(lag) = lag.known().filter(|lag| **lag >= LAG_MAX) {
                let entries = format::counted(*lag, "entry", "entries");
                let remedy = "Check the load of its machine, and the latency of its disk and network.";
                problems.push(MemberProblem::warning(format!("{entries} {what}"), remedy));
            }
        }
        problems
    }

    /// Used share of the quota, in whole per cent.
    pub fn quota_percent(&self) -> Option<u64> {
        let (size, quota) = (*self.size_bytes.known()?, *self.quota_bytes.known()?);
        size.saturating_mul(100).checked_div(quota)
    }

    fn answers_with_vote(&self) -> bool {
        self.role.known().is_some_and(|role| *role != MemberRole::Learner)
    }
}

fn alarm_remedy(alarm: &str) -> &'static str {
    match alarm {
        "NOSPACE" => {
            "The quota is exhausted and etcd refuses all writes: compact, `etcdctl defrag`, then `etcdctl alarm disarm`."
        }
        _ => {
            "Its data differ from those of the others: remove the member, and add it again with an empty data folder."
        }
    }
}

impl ClusterView {
    pub fn availability(&self) -> Availability {
        let Some(voters) = self.voters.known().copied() else {
            return Availability::Unknown;
        };
        let answering = self.answering();
        let has_leader = self.members.iter().any(|member| {
            matches!(
                member.role.known(),
                Some(MemberRole::Leader | MemberRole::Follower)
            )
        });
        match answering.checked_sub(voters / 2 + 1) {
            Some(spare) if has_leader => Availability::Majority { spare },
            _ => Availability::NoMajority,
        }
    }

    /// Members with a vote that answer.
    pub fn answering(&self) -> u64 {
        let voting = self.members.iter().filter(|member| member.answers_with_vote());
        voting.count() as u64
    }

    /// Members with problems first, the worst of them at the top; then by name.
    pub fn sort_members(&mut self) {
        self.members.sort_by_cached_key(|member| {
            let problems = member.problems();
            let is_critical = problems.iter().any(|problem| problem.is_critical);
            (problems.is_empty(), !is_critical, member.name.clone())
        });
    }

    /// One sentence for an operator.
    pub fn headline(&self) -> String {
        let answering = self.answering();
        match (self.availability(), self.voters.known()) {
            (Availability::Majority { spare }, Some(voters)) => {
                let spare_text = match spare {
                    0 => "the loss of one more stops it".to_owned(),
                    _ => format!("{spare} more may fail"),
                };
                format!("{answering} of {voters} members answer; {spare_text}")
            }
            (Availability::NoMajority, Some(voters)) => {
                format!("No majority: {answering} of {voters} members answer, and nothing is committed")
            }
            _ => format!(
                "{}; how many have a vote is unknown",
                format::counted(answering, "member answers", "members answer")
            ),
        }
    }
}

#[cfg(test)]
mod tests;
