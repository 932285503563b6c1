//! What one member reports of itself, and its place among the others.

use domain::backend::MemberRole;
use etcd_client::StatusResponse;

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberStatus {
    pub(crate) id: u64,
    /// The leader that it knows; 0 without one.
    pub(crate) leader: u64,
    pub(crate) term: u64,
    pub(crate) is_learner: bool,
    pub(crate) version: String,
    pub(crate) size_bytes: u64,
    /// Reported by etcd 3.6 and later.
    pub(crate) quota_bytes: Option<u64>,
    /// Last entry that it knows to be committed, and last applied one.
    pub(crate) committed: u64,
    pub(crate) applied: u64,
    /// Members with an alarm, with its name: each member knows those of all.
    pub(crate) alarms: Vec<(u64, String)>,
}

impl From<&StatusResponse> for MemberStatus {
    fn from(status: &StatusResponse) -> Self {
        Self {
            id: status.header().map_or(0, etcd_client::ResponseHeader::member_id),
            leader: status.leader(),
            term: status.raft_term(),
            is_learner: status.is_learner(),
            version: status.version().to_owned(),
            size_bytes: u64::try_from(status.db_size()).unwrap_or(0),
            quota_bytes: u64::try_from(status.db_size_quota()).ok().filter(|it| *it > 0),
            committed: status.raft_index(),
            applied: status.raft_applied_index(),
            alarms: status.errors().iter().filter_map(|it| parse_alarm(it)).collect(),
        }
    }
}

impl MemberStatus {
    pub(crate) fn role(&self) -> MemberRole {
        if self.is_learner {
            MemberRole::Learner
        } else if self.leader == 0 {
            MemberRole::NoLeader
        } else if self.leader == self.id {
            MemberRole::Leader
        } else {
            MemberRole::Follower
        }
    }
}

/// `memberID:10276657743932975437 alarm:NOSPACE `
fn parse_alarm(error: &str) -> Option<(u64, String)> {
    let field = |name: &str| {
        error
            .split_ascii_whitespace()
            .find_map(|part| part.strip_prefix(name))
    };
    let alarm = field("alarm:")?.to_owned();
    Some((field("memberID:")?.parse().ok()?, alarm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_names_its_member() {
        let alarm = parse_alarm("memberID:10276657743932975437 alarm:NOSPACE ");
        assert_eq!(alarm, Some((10_276_657_743_932_975_437, "NOSPACE".to_owned())));
        assert_eq!(parse_alarm("etcdserver: no leader"), None);
    }
}
