use super::*;

fn member(name: &str, role: MemberRole) -> ClusterMember {
    ClusterMember {
        name: name.to_owned(),
        address: format!("http://{name}:2379"),
        fault: None,
        answered_at: Some(DateTime::UNIX_EPOCH),
        role: Reported::Value(role),
        version: Reported::Value("3.5.16".to_owned()),
        size_bytes: Reported::Value(100),
        quota_bytes: Reported::Value(1_000),
        behind_leader: Reported::Value(0),
        unapplied: Reported::Value(0),
        alarms: Vec::new(),
    }
}

fn silent(name: &str) -> ClusterMember {
    let unknown = || Reported::unknown("it does not answer");
    ClusterMember {
        fault: Some("connection refused".to_owned()),
        role: Reported::unknown("it does not answer"),
        version: Reported::unknown("it does not answer"),
        size_bytes: unknown(),
        quota_bytes: unknown(),
        behind_leader: unknown(),
        unapplied: unknown(),
        ..member(name, MemberRole::Follower)
    }
}

fn cluster(members: Vec<ClusterMember>) -> ClusterView {
    ClusterView {
        shard: None,
        asked_at: DateTime::UNIX_EPOCH,
        age_ms: 0,
        voters: Reported::Value(3),
        counted_since: DateTime::UNIX_EPOCH,
        leader_changes: 0,
        leader_changed_at: None,
        members,
    }
}

#[test]
fn the_headline_says_how_many_more_may_fail() {
    let (leader, follower) = (member("a", MemberRole::Leader), member("b", MemberRole::Follower));
    for (members, headline) in [
        (
            vec![
                leader.clone(),
                follower.clone(),
                member("c", MemberRole::Follower),
            ],
            "3 of 3 members answer; 1 more may fail",
        ),
        (
            // A learner replaces no member with a vote.
            vec![
                leader.clone(),
                follower,
                silent("c"),
                member("d", MemberRole::Learner),
            ],
            "2 of 3 members answer; the loss of one more stops it",
        ),
        (
            vec![leader, silent("b"), silent("c")],
            "No majority: 1 of 3 members answer, and nothing is committed",
        ),
        (
            // All answer, and none reaches another.
            ["a", "b", "c"]
                .map(|name| member(name, MemberRole::NoLeader))
                .into(),
            "No majority: 3 of 3 members answer, and nothing is committed",
        ),
    ] {
        assert_eq!(cluster(members).headline(), headline);
    }
    let unknown = ClusterView {
        voters: Reported::unknown("etcd does not list its members to this account"),
        ..cluster(vec![member("a", MemberRole::Leader)])
    };
    assert_eq!(
        unknown.headline(),
        "1 member answers; how many have a vote is unknown"
    );
}

#[test]
fn members_with_problems_are_first_and_the_worst_at_the_top() {
    let full = ClusterMember {
        size_bytes: Reported::Value(750),
        ..member("full", MemberRole::Follower)
    };
    let slow = ClusterMember {
        unapplied: Reported::Value(LAG_MAX),
        ..member("slow", MemberRole::Follower)
    };
    let mut view = cluster(vec![member("a", MemberRole::Leader), full, slow, silent("z")]);
    view.sort_members();
    let names: Vec<&str> = view.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["z", "full", "slow", "a"]);
    let texts = |at: usize| -> Vec<String> {
        let problems = view.members[at].problems();
        problems.into_iter().map(|problem| problem.text).collect()
    };
    assert_eq!(texts(0), ["connection refused"]);
    assert_eq!(texts(1), ["75 % of the quota is used"]);
    assert_eq!(texts(2), ["1,000 entries not applied yet"]);
    assert!(texts(3).is_empty());
}

#[test]
fn each_alarm_is_a_critical_problem_with_its_remedy() {
    let alarmed = ClusterMember {
        alarms: vec!["CORRUPT".to_owned(), "NOSPACE".to_owned()],
        ..member("a", MemberRole::Leader)
    };
    let problems = alarmed.problems();
    let critical = problems.iter().all(|problem| problem.is_critical);
    assert!(critical && problems.len() == 2, "{problems:?}");
    assert!(problems[0].remedy.contains("remove the member"), "{problems:?}");
    assert!(problems[1].remedy.contains("alarm disarm"), "{problems:?}");
}
