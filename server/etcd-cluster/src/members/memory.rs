//! What is known of a cluster from earlier answers.

use chrono::{DateTime, Utc};
use domain::backend::ClusterMember;
use domain::reported::Reported;
use domain::tick::Tick;
use runtime::clock::ClockReading;

use crate::status::MemberStatus;

/// A quota changes with a restart only. Milliseconds.
const QUOTA_INTERVAL_MS: i64 = 60_000;
const UNREACHED: &str = "no configured address leads to it";

/// A member as the cluster lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedMember {
    id: u64,
    name: String,
    client_urls: Vec<String>,
    is_learner: bool,
}

impl From<&etcd_client::Member> for ListedMember {
    fn from(member: &etcd_client::Member) -> Self {
        Self {
            id: member.id(),
            name: member.name().to_owned(),
            client_urls: member.client_urls().to_vec(),
            is_learner: member.is_learner(),
        }
    }
}

/// By configured address.
#[derive(Debug, Clone, Default)]
struct Known {
    member: Option<u64>,
    answered_at: Option<DateTime<Utc>>,
    quota: Option<(Result<u64, String>, Tick)>,
}

#[derive(Debug)]
pub(super) struct Memory {
    known: Vec<Known>,
    pub(super) list: Option<Vec<ListedMember>>,
    /// Id and term of the last leader.
    leader: Option<(u64, u64)>,
    pub(super) counted_since: DateTime<Utc>,
    pub(super) leader_changes: u64,
    pub(super) leader_changed_at: Option<DateTime<Utc>>,
}

impl Memory {
    pub(super) fn new(addresses: usize, now: ClockReading) -> Self {
        Self {
            known: vec![Known::default(); addresses],
            list: None,
            leader: None,
            counted_since: now.wall,
            leader_changes: 0,
            leader_changed_at: None,
        }
    }

    pub(super) fn record(&mut self, answers: &[Result<MemberStatus, String>], now: ClockReading) {
        for (known, answer) in self.known.iter_mut().zip(answers) {
            if let Ok(status) = answer {
                known.member = Some(status.id);
                known.answered_at = Some(now.wall);
            }
        }
        // A member that is cut off may report an old leader, of a lower term.
        let with_leader = answers.iter().flatten().filter(|status| status.leader != 0);
        let Some((term, leader)) = with_leader.map(|status| (status.term, status.leader)).max() else {
            return;
        };
        let is_newer = self.leader.is_none_or(|(_, before)| term > before);
        if !is_newer {
            return;
        }
        if self.leader.replace((leader, term)).is_some() {
            self.leader_changes += 1;
            self.leader_changed_at = Some(now.wall);
        }
    }

    pub(super) fn is_quota_due(&self, index: usize, now: Tick) -> bool {
        let read_at = self.known[index].quota.as_ref().map(|(_, at)| *at);
        read_at.is_none_or(|at| now.since(at) >= QUOTA_INTERVAL_MS)
    }

    pub(super) fn record_quota(&mut self, index: usize, quota: Result<u64, String>, now: Tick) {
        self.known[index].quota = Some((quota, now));
    }

    pub(super) fn quota(&self, index: usize) -> Reported<u64> {
        match &self.known[index].quota {
            Some((Ok(bytes), _)) => Reported::Value(*bytes),
            Some((Err(why), _)) => Reported::Unknown(why.clone().into()),
            None => Reported::unknown("its metrics have not been read yet"),
        }
    }

    /// Id of the member that an address leads to, or of one that no address leads to.
    pub(super) fn member_id(&self, index: usize) -> Option<u64> {
        match self.known.get(index) {
            Some(known) => known.member,
            None => self
                .unreached_members()
                .nth(index - self.known.len())
                .map(|member| member.id),
        }
    }

    pub(super) fn answered_at(&self, index: usize) -> Option<DateTime<Utc>> {
        self.known[index].answered_at
    }

    pub(super) fn name(&self, index: usize, endpoint: &str) -> Option<&str> {
        let id = self.known[index].member;
        let is_it = |member: &&ListedMember| match id {
            Some(id) => member.id == id,
            None => member
                .client_urls
                .iter()
                .any(|url| url.trim_end_matches('/') == endpoint),
        };
        let found = self.list.as_ref()?.iter().find(is_it)?;
        Some(found.name.as_str()).filter(|name| !name.is_empty())
    }

    pub(super) fn voters(&self) -> Reported<u64> {
        match &self.list {
            Some(list) => Reported::Value(list.iter().filter(|member| !member.is_learner).count() as u64),
            None => Reported::unknown("no member has listed them"),
        }
    }

    /// Members that no configured address leads to.
    pub(super) fn unreached(&self) -> Vec<ClusterMember> {
        self.unreached_members()
            .map(|member| {
                let address = member.client_urls.join(", ");
                unknown(member.name.clone(), &address, None, UNREACHED)
            })
            .collect()
    }

    /// None while an address has never answered: it may lead to any of them.
    fn unreached_members(&self) -> impl Iterator<Item = &ListedMember> {
        let is_complete = self.known.iter().all(|known| known.member.is_some());
        let list = self.list.iter().flatten().filter(move |_| is_complete);
        list.filter(|member| !self.known.iter().any(|known| known.member == Some(member.id)))
    }
}

/// A member of which nothing is known, with the reason.
pub(super) fn unknown(
    name: String,
    address: &str,
    answered_at: Option<DateTime<Utc>>,
    why: &'static str,
) -> ClusterMember {
    ClusterMember {
        name,
        address: address.to_owned(),
        fault: None,
        answered_at,
        role: Reported::unknown(why),
        version: Reported::unknown(why),
        size_bytes: Reported::unknown(why),
        quota_bytes: Reported::unknown(why),
        behind_leader: Reported::unknown(why),
        unapplied: Reported::unknown(why),
        alarms: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runtime::clock::Clock;

    fn status(id: u64, leader: u64, term: u64) -> Result<MemberStatus, String> {
        Ok(MemberStatus {
            id,
            leader,
            term,
            is_learner: false,
            version: String::new(),
            size_bytes: 0,
            quota_bytes: None,
            committed: 0,
            applied: 0,
            alarms: Vec::new(),
        })
    }

    #[tokio::test]
    async fn a_new_term_with_a_leader_is_a_leader_change() {
        let now = Clock::start().now();
        let mut memory = Memory::new(2, now);
        for (answers, changes) in [
            ([status(1, 1, 2), status(2, 1, 2)], 0),
            // An election runs.
            ([status(1, 0, 3), status(2, 0, 3)], 0),
            ([status(1, 2, 3), status(2, 2, 3)], 1),
            // The old leader, cut off, reports itself.
            ([status(1, 1, 2), status(2, 2, 3)], 1),
            // The same member was elected again.
            ([Err("refused".to_owned()), status(2, 2, 5)], 2),
            ([Err("refused".to_owned()), Err("refused".to_owned())], 2),
        ] {
            memory.record(&answers, now);
            assert_eq!(memory.leader_changes, changes, "{answers:?}");
        }
        assert!(memory.leader_changed_at.is_some());
    }

    #[tokio::test]
    async fn a_member_without_an_address_is_listed_as_unknown() {
        let mut memory = Memory::new(1, Clock::start().now());
        let listed = |id: u64, name: &str| ListedMember {
            id,
            name: name.to_owned(),
            client_urls: vec![format!("http://{name}:2379")],
            is_learner: false,
        };
        memory.list = Some(vec![listed(1, "a"), listed(2, "b")]);
        // Its one address has never answered and may lead to either.
        assert!(memory.unreached().is_empty());
        assert_eq!(memory.name(0, "http://b:2379"), Some("b"));
        memory.record(&[status(1, 1, 2)], Clock::start().now());
        let unreached = memory.unreached();
        assert_eq!(unreached.len(), 1);
        assert_eq!((unreached[0].name.as_str(), memory.member_id(1)), ("b", Some(2)));
        assert_eq!(unreached[0].role.why(), Some(UNREACHED));
    }
}
