//! The members of a replicated backend in `/v1/backends`.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::backend::{ClusterMember, ClusterView, MemberProblem};
use serde::Serialize;
use utoipa::ToSchema;

use super::Missing;

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "Cluster")]
pub struct ClusterDto {
    /// Index of the shard that the cluster stores; null unless the lease store is sharded.
    shard: Option<u32>,
    /// When the members were last asked.
    asked_at: DateTime<Utc>,
    age_ms: i64,
    /// For display: how many answer, and how many more may fail.
    headline: String,
    /// Members with a vote.
    voters: Option<u64>,
    /// Members with a vote that answer.
    answering: u64,
    /// Changes of the leader since `countedSince`.
    leader_changes: u64,
    leader_changed_at: Option<DateTime<Utc>>,
    counted_since: DateTime<Utc>,
    /// Members with problems first.
    members: Vec<ClusterMemberDto>,
    unknown: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(title = "ClusterMember")]
pub struct ClusterMemberDto {
    name: String,
    address: String,
    /// Why it does not answer; null if it does.
    error: Option<String>,
    /// Its last answer to this server.
    answered_at: Option<DateTime<Utc>>,
    /// `leader`, `follower`, `learner` or `no_leader`.
    role: Option<&'static str>,
    version: Option<String>,
    /// Size of its database, in bytes.
    size_bytes: Option<u64>,
    /// At this size etcd refuses all writes.
    quota_bytes: Option<u64>,
    /// Committed entries of the leader's log that it does not know to be committed.
    behind_leader: Option<u64>,
    /// Committed entries that it has not applied.
    unapplied: Option<u64>,
    /// `NOSPACE`, `CORRUPT`.
    alarms: Vec<String>,
    /// The worst first.
    problems: Vec<MemberProblemDto>,
    unknown: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(title = "MemberProblem")]
pub struct MemberProblemDto {
    /// `critical` or `warning`.
    severity: &'static str,
    text: String,
    remedy: &'static str,
}

impl From<ClusterView> for ClusterDto {
    fn from(view: ClusterView) -> Self {
        let (headline, answering) = (view.headline(), view.answering());
        let mut missing = Missing::default();
        Self {
            shard: view.shard,
            asked_at: view.asked_at,
            age_ms: view.age_ms,
            headline,
            voters: missing.take("voters", view.voters),
            answering,
            leader_changes: view.leader_changes,
            leader_changed_at: view.leader_changed_at,
            counted_since: view.counted_since,
            members: view.members.into_iter().map(ClusterMemberDto::from).collect(),
            unknown: missing.unknown,
        }
    }
}

impl From<ClusterMember> for ClusterMemberDto {
    fn from(member: ClusterMember) -> Self {
        let problems = member
            .problems()
            .into_iter()
            .map(MemberProblemDto::from)
            .collect();
        let mut missing = Missing::default();
        Self {
            name: member.name,
            address: member.address,
            error: member.fault,
            answered_at: member.answered_at,
            role: missing.take("role", member.role.map(|role| role.as_str())),
            version: missing.take("version", member.version),
            size_bytes: missing.take("sizeBytes", member.size_bytes),
            quota_bytes: missing.take("quotaBytes", member.quota_bytes),
            behind_leader: missing.take("behindLeader", member.behind_leader),
            unapplied: missing.take("unapplied", member.unapplied),
            alarms: member.alarms,
            problems,
            unknown: missing.unknown,
        }
    }
}

impl From<MemberProblem> for MemberProblemDto {
    fn from(problem: MemberProblem) -> Self {
        Self {
            severity: if problem.is_critical {
                "critical"
            } else {
                "warning"
            },
            text: problem.text,
            remedy: problem.remedy,
        }
    }
}
