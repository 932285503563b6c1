//! Inspects an etcd cluster and the keys below the prefix before they are used: for the start, which refuses an unsuitable
//! cluster, and for `leasehold doctor`.

use std::collections::HashMap;
use std::time::Duration;

use config::LeaseStoreConfig;
use etcd_client::{Client, GetOptions, StatusResponse};

use super::connection::Link;
use super::error::{EtcdError, EtcdErrorKind};
use super::identity::{LAYOUT, StoreMeta, raft_position, read_meta, read_page, rewound};
use super::import::read_move;
use super::keys::Keys;
use crate::error::LeaseOpenError;
use crate::store::StoreError;

/// Oldest version of etcd with all features that are used here.
const VERSION_MIN: (u32, u32) = (3, 4);
/// An election takes one or two seconds with etcd's defaults; without a majority it never ends.
const ELECTION_MAX: Duration = Duration::from_secs(5);
const ELECTION_PAUSE: Duration = Duration::from_millis(250);
const MAJORITY_REMEDY: &str =
    "Check that a majority of etcd's members run and reach each other; `etcdctl endpoint status` shows them.";

/// State of a cluster that may hold leases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EtcdReport {
    pub version: String,
    /// Members with a vote.
    pub members: usize,
    /// Members that do not answer, by their address, with the reason.
    pub down: Vec<(String, String)>,
    /// `NOSPACE` and `CORRUPT`, as etcd reports them.
    pub alarms: Vec<String>,
    /// Bytes of the database, the largest of the members.
    pub size_bytes: i64,
    /// Whether the store exists.
    pub exists: bool,
    /// Why fencing tokens would repeat without a raised epoch: the next start raises it.
    pub rewound: Option<String>,
    /// The store's time, in milliseconds since 1970, as last written.
    pub clock_ms: Option<i64>,
}

pub(super) fn refusal<R: Into<String>, M: Into<String>>(reason: R, remedy: M) -> LeaseOpenError {
    LeaseOpenError::Etcd {
        reason: reason.into(),
        remedy: remedy.into(),
        is_outage: false,
    }
}

/// A refusal that ends when etcd answers.
fn outage<R: Into<String>, M: Into<String>>(reason: R, remedy: M) -> LeaseOpenError {
    LeaseOpenError::Etcd {
        reason: reason.into(),
        remedy: remedy.into(),
        is_outage: true,
    }
}

pub(super) fn unreadable(error: StoreError) -> LeaseOpenError {
    let refuse = match error {
        StoreError::Etcd(_) | StoreError::NoAnswer(_) => outage::<String, &str>,
        _ => refusal::<String, &str>,
    };
    refuse(error.to_string(), MAJORITY_REMEDY)
}

/// A failed call, with the command that grants a missing right.
pub(super) fn denied(link: &Link, keys: &Keys, fault: EtcdError) -> LeaseOpenError {
    let prefix = keys.prefix();
    match fault.kind {
        EtcdErrorKind::Denied => match link.user() {
            Some(user) => refusal(
                format!(
                    "the account {user} may not read and write the keys below {prefix}, or its password is wrong: {}",
                    fault.text
                ),
                format!(
                    "etcdctl role grant-permission leasehold-lease --prefix=true readwrite {prefix} && etcdctl user \
                     grant-role {user} leasehold-lease"
                ),
            ),
            None => refusal(
                format!("etcd requires an account: {}", fault.text),
                format!(
                    "Set lease.user and lease.password_file to an account that may read and write below {prefix}."
                ),
            ),
        },
        EtcdErrorKind::NoSpace => refusal(
            "the quota of etcd's database is exhausted (alarm NOSPACE), and it accepts no writes",
            "etcdctl compact REVISION && etcdctl defrag --cluster && etcdctl alarm disarm; raise \
             --quota-backend-bytes if the data need it.",
        ),
        _ => unreadable(fault.into()),
    }
}

/// # Errors
/// The reason why this cluster cannot hold leases, and the remedy.
pub(super) async fn inspect(link: &Link, keys: &Keys) -> Result<EtcdReport, LeaseOpenError> {
    let mut report = EtcdReport::default();
    let (statuses, down) = statuses_after_election(link, keys).await?;
    let Some((_, first)) = statuses.first() else {
        return Err(no_status(&down));
    };
    report.down = down;
    report.version = first.version().to_owned();
    check_members(&statuses)?;
    for (_, status) in &statuses {
        report.size_bytes = report.size_bytes.max(status.db_size());
        let alarms = status.errors().iter().filter(|error| error.contains("alarm"));
        report.alarms.extend(alarms.cloned());
    }
    report.alarms.sort_unstable();
    report.alarms.dedup();
    let listed = link.call(|mut client: Client| async move { client.member_list().await });
    let listed = listed.await.map_err(|fault| denied(link, keys, fault))?;
    let voters: Vec<_> = listed
        .members()
        .iter()
        .filter(|member| !member.is_learner())
        .collect();
    report.members = voters.len();
    if link.endpoints().len() < voters.len() {
        let urls: Vec<&str> = voters
            .iter()
            .flat_map(|member| member.client_urls())
            .map(String::as_str)
            .collect();
        return Err(refusal(
            format!(
                "the cluster has {} members with a vote, and lease.store names {}: without the others, one failure could \
                 stop the lease service although a majority runs",
                voters.len(),
                link.endpoints().len()
            ),
            format!("Name the client addresses of all members: {}.", urls.join(", ")),
        ));
    }
    Ok(report)
}

/// Statuses by address, and reasons why the others have none.
type Statuses = (Vec<(String, StatusResponse)>, Vec<(String, String)>);

/// As [`statuses`]; waits for an election if no member has a status because the cluster has no leader.
async fn statuses_after_election(link: &Link, keys: &Keys) -> Result<Statuses, LeaseOpenError> {
    let mut latest = statuses(link, keys).await?;
    let election = async {
        while latest.0.is_empty() && lacks_leader(&latest.1) {
            tokio::time::sleep(ELECTION_PAUSE).await;
            latest = statuses(link, keys).await?;
        }
        Ok::<_, LeaseOpenError>(())
    };
    if let Ok(read) = tokio::time::timeout(ELECTION_MAX, election).await {
        read?;
    }
    Ok(latest)
}

fn lacks_leader(down: &[(String, String)]) -> bool {
    down.iter().any(|(_, why)| why.contains("no leader"))
}

fn no_status(down: &[(String, String)]) -> LeaseOpenError {
    let reasons: Vec<String> = down
        .iter()
        .map(|(address, why)| format!("{address}: {why}"))
        .collect();
    let reasons = reasons.join("; ");
    if lacks_leader(down) {
        return outage(format!("etcd has no leader ({reasons})"), MAJORITY_REMEDY);
    }
    outage(
        format!("none of its members answers ({reasons})"),
        "Check the addresses in lease.store, that etcd runs, and its TLS settings.",
    )
}

/// The status of each member that answers.
async fn statuses(link: &Link, keys: &Keys) -> Result<Statuses, LeaseOpenError> {
    let requests = (0..link.endpoints().len())
        .map(|index| link.call_member(index, |mut client: Client| async move { client.status().await }));
    let answers = futures::future::join_all(requests).await;
    let (mut statuses, mut down) = (Vec::new(), Vec::new());
    for (endpoint, answer) in link.endpoints().iter().zip(answers) {
        match answer {
            Ok(status) => statuses.push((endpoint.clone(), status)),
            Err(fault) if fault.kind == EtcdErrorKind::Denied => return Err(denied(link, keys, fault)),
            Err(fault) => down.push((endpoint.clone(), fault.text)),
        }
    }
    Ok((statuses, down))
}

fn check_members(statuses: &[(String, StatusResponse)]) -> Result<(), LeaseOpenError> {
    let mut seen: HashMap<u64, &str> = HashMap::new();
    let mut clusters = Vec::new();
    for (endpoint, status) in statuses {
        let version: Vec<u32> = status
            .version()
            .split('.')
            .map_while(|part| part.parse().ok())
            .collect();
        let is_old = version.len() < 2 || (version[0], version[1]) < VERSION_MIN;
        if is_old {
            return Err(refusal(
                format!("{endpoint} runs etcd {}", status.version()),
                "Upgrade to etcd 3.4 or later.",
            ));
        }
        let Some(header) = status.header() else { continue };
        clusters.push(header.cluster_id());
        if let Some(other) = seen.insert(header.member_id(), endpoint) {
            return Err(refusal(
                format!("{other} and {endpoint} lead to the same member"),
                "Name each member of the cluster once in lease.store.",
            ));
        }
    }
    if clusters.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(refusal(
            "the addresses in lease.store lead to different clusters",
            "Name the members of one cluster; `etcdctl member list` shows them.",
        ));
    }
    if statuses.iter().all(|(_, status)| status.is_learner()) {
        return Err(refusal(
            "only learners answer, which serve neither linearizable reads nor writes",
            "Name the members with a vote, or promote the learner: etcdctl member promote ID.",
        ));
    }
    Ok(())
}

/// Checks the keys below the prefix, and reads what is known of the store.
///
/// # Errors
/// The reason why they are not ours, and the remedy.
pub(super) async fn inspect_keys(
    link: &Link,
    keys: &Keys,
    config: &LeaseStoreConfig,
    report: &mut EtcdReport,
) -> Result<StoreMeta, LeaseOpenError> {
    let remedy = "Choose another prefix in lease.store; nothing else may write below it.";
    let first_key = || GetOptions::new().with_limit(1).with_keys_only();
    for gap in keys.gaps().into_iter().filter(|gap| gap.from < gap.to) {
        let found = read_page(link, &gap.from, &gap.to, first_key()).await;
        let found = found.map_err(|fault| denied(link, keys, fault))?;
        if let Some(foreign) = found.first() {
            let shown = domain::escape::text(foreign.key()).into_owned();
            let shown = domain::escape::visible(&shown).into_owned();
            return Err(refusal(
                format!("the key {shown} was not written by the lease service"),
                remedy,
            ));
        }
    }
    let meta = read_meta(link, keys).await.map_err(unreadable)?;
    if read_move(link, keys).await.map_err(unreadable)?.is_some() {
        return Err(refusal(
            format!(
                "leases were moved below {}, and not all have arrived",
                keys.prefix()
            ),
            "Repeat `leasehold migrate --to etcd` until it reports the end of the move.",
        ));
    }
    let Some((identity, _)) = &meta.identity else {
        for range in [keys.all_free(), keys.all_held(), keys.all_leases()] {
            let found = read_page(link, &range.from, &range.to, first_key()).await;
            if !found.map_err(|fault| denied(link, keys, fault))?.is_empty() {
                return Err(refusal(
                    format!(
                        "there are leases below {}, and the identity of their store is missing",
                        keys.prefix()
                    ),
                    "Restore etcd from a snapshot, or choose an empty prefix in lease.store.",
                ));
            }
        }
        return Ok(meta);
    };
    report.exists = true;
    report.clock_ms = meta.clock.as_ref().map(|(clock, _)| clock.ms);
    if identity.layout != LAYOUT {
        return Err(refusal(
            format!(
                "its keys have layout {}, and this version of Leasehold writes layout {LAYOUT}",
                identity.layout
            ),
            "Use the version of Leasehold that wrote them, or choose another prefix in lease.store.",
        ));
    }
    if let (Some(stored), Some(configured)) = (&identity.installation, &config.installation)
        && stored != configured
    {
        return Err(refusal(
            format!(
                "the keys below {} belong to another installation of Leasehold ({stored}; this one, by its `store`, is \
                 {configured})",
                keys.prefix()
            ),
            "Choose another prefix in lease.store, or use the `store` of that installation: several servers share both.",
        ));
    }
    let position = raft_position(link, keys)
        .await
        .map_err(|fault| denied(link, keys, fault))?;
    report.rewound = rewound(&meta, position, config.known_floor);
    Ok(meta)
}
