//! Members of real clusters: killed, paused, without a majority, over TLS.

use testkit::{Certs, EtcdCluster, EtcdOptions, Throwaway, eventually};

use domain::backend::Availability;

use super::*;

fn options(args: &[&str]) -> EtcdOptions {
    EtcdOptions {
        fast: true,
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        ..EtcdOptions::default()
    }
}

async fn cluster(members: usize, args: &[&str]) -> EtcdCluster {
    Throwaway::etcd_cluster(members, options(args)).await.unwrap()
}

fn reader(endpoints: Vec<String>, tls: &TlsConfig) -> ClusterReader {
    let access = ClusterAccess {
        endpoints,
        options: ConnectOptions::new().with_connect_timeout(MEMBER_TIMEOUT),
        without_login: None,
        tls,
    };
    ClusterReader::new(access, Clock::start()).unwrap()
}

fn member<'v>(view: &'v ClusterView, name: &str) -> &'v ClusterMember {
    view.members.iter().find(|member| member.name == name).unwrap()
}

/// The first view that is as expected: a member of a busy machine may miss one reading.
async fn read_until(
    reader: &ClusterReader,
    what: &str,
    is_expected: impl Fn(&ClusterView) -> bool,
) -> ClusterView {
    let found = Mutex::new(None);
    eventually(what, || async {
        let view = reader.read().await;
        let is_found = is_expected(&view);
        *found.lock() = Some(view);
        is_found
    })
    .await;
    found.into_inner().unwrap()
}

/// A view of all members, and the leader before and after it was read: elections are frequent on a busy machine.
async fn read_with_leader(etcd: &EtcdCluster, reader: &ClusterReader) -> (ClusterView, usize) {
    loop {
        let leader = etcd.leader().await.unwrap();
        let view = read_until(reader, "all members answer", |view| {
            view.members.iter().all(|member| member.problems().is_empty())
        })
        .await;
        if etcd.leader().await.unwrap() == leader {
            return (view, leader);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_and_a_paused_member_are_shown_as_such() {
    let etcd = cluster(3, &[]).await;
    let reader = reader(etcd.endpoints(), &TlsConfig::default());
    let (view, leader) = read_with_leader(&etcd, &reader).await;
    assert_eq!(view.headline(), "3 of 3 members answer; 1 more may fail");
    for (index, name) in ["m0", "m1", "m2"].into_iter().enumerate() {
        let found = member(&view, name);
        assert!(found.problems().is_empty(), "{found:?}");
        let role = if index == leader {
            MemberRole::Leader
        } else {
            MemberRole::Follower
        };
        assert_eq!(found.role, Reported::Value(role), "{found:?}");
        assert!(
            found.version.known().is_some_and(|it| it.starts_with("3.")),
            "{found:?}"
        );
        assert!(found.size_bytes.known().is_some_and(|it| *it > 0), "{found:?}");
        // etcd's default.
        assert_eq!(
            found.quota_bytes,
            Reported::Value(2 * 1_024 * 1_024 * 1_024),
            "{found:?}"
        );
    }
    etcd.members[leader].kill().await.unwrap();
    let changes = view.leader_changes;
    let view = read_until(&reader, "the others have elected one of them", |view| {
        view.leader_changes > changes
            && view.headline() == "2 of 3 members answer; the loss of one more stops it"
    })
    .await;
    let first = &view.members[0];
    assert_eq!(first.name, format!("m{leader}"), "problems are first: {view:?}");
    assert!(
        first.fault.as_ref().is_some_and(|why| why.contains("refused")),
        "{first:?}"
    );
    assert!(
        first.answered_at.is_some() && first.role.is_unknown(),
        "{first:?}"
    );
    assert!(first.size_bytes.is_unknown(), "{first:?}");

    let paused = (leader + 1) % 3;
    etcd.members[paused].pause().await.unwrap();
    let last = format!("m{}", (leader + 2) % 3);
    let view = read_until(&reader, "the last member knows no leader", |view| {
        view.availability() == Availability::NoMajority
            && member(view, &last).role == Reported::Value(MemberRole::NoLeader)
    })
    .await;
    let unanswered = member(&view, &format!("m{paused}"));
    assert!(
        unanswered
            .fault
            .as_ref()
            .is_some_and(|why| why.contains("no answer within")),
        "{unanswered:?}"
    );
    let last = member(&view, &last);
    assert!(last.behind_leader.is_unknown(), "{last:?}");
    etcd.members[paused].resume().await.unwrap();
    read_until(&reader, "two are a majority again", |view| {
        view.availability() == Availability::Majority { spare: 0 }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exhausted_quota_is_an_alarm_of_its_member() {
    const QUOTA: u64 = 2 * 1_024 * 1_024;
    let etcd = cluster(1, &[&format!("--quota-backend-bytes={QUOTA}")]).await;
    let reader = reader(etcd.endpoints(), &TlsConfig::default());
    let value = "x".repeat(100_000);
    let mut key = 0;
    while etcd
        .ctl(&[0], &["put", &format!("/fill/{key}"), &value])
        .await
        .is_ok()
    {
        key += 1;
    }
    let view = read_until(&reader, "the alarm is raised", |view| {
        member(view, "m0").alarms == ["NOSPACE"]
    })
    .await;
    let full = member(&view, "m0");
    assert_eq!(full.quota_bytes, Reported::Value(QUOTA));
    assert!(
        full.quota_percent().is_some_and(|percent| percent >= 90),
        "{full:?}"
    );
    let problems = full.problems();
    assert!(problems[0].remedy.contains("alarm disarm"), "{problems:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_without_a_configured_address_are_unknown() {
    let etcd = cluster(3, &[]).await;
    let reader = reader(vec![etcd.members[1].endpoint()], &TlsConfig::default());
    let view = reader.read().await;
    assert_eq!(view.voters, Reported::Value(3));
    assert_eq!(view.members.len(), 3, "{view:?}");
    assert!(member(&view, "m1").role.is_known(), "{view:?}");
    for other in ["m0", "m2"] {
        let found = member(&view, other);
        assert!(found.role.is_unknown() && found.fault.is_none(), "{found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_is_read_over_tls_with_its_quota() {
    let certs = Certs::make();
    let secure = EtcdOptions {
        tls: Some(certs.server()),
        ..options(&[])
    };
    let etcd = Throwaway::etcd(secure).await.unwrap();
    let trusting = TlsConfig {
        ca_file: Some(certs.ca()),
        ..TlsConfig::default()
    };
    let tls = etcd_client::TlsOptions::new().ca_certificate(etcd_client::Certificate::from_pem(
        std::fs::read(certs.ca()).unwrap(),
    ));
    let access = ClusterAccess {
        endpoints: vec![etcd.tls_endpoint().unwrap()],
        options: ConnectOptions::new().with_tls(tls),
        without_login: None,
        tls: &trusting,
    };
    let view = ClusterReader::new(access, Clock::start()).unwrap().read().await;
    assert_eq!(
        view.headline(),
        "1 of 1 members answer; the loss of one more stops it"
    );
    assert!(view.members[0].quota_bytes.is_known(), "{view:?}");
}
