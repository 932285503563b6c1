//! Checks of the stores of `lease.store`. Of each etcd cluster: members, alarms, rights, foreign keys, restored snapshots, clock.

use super::check_result::Finding;
use super::store::examine_postgres;
use config::{Config, LeaseStoreConfig, LeaseStores};
use lease::store::etcd::{EtcdReport, inspect_store};
use lease::{LeaseOpenError, ShardError, store_inspection};
use runtime::clock::Clock;
use secrecy::ExposeSecret as _;

const CHECK: &str = "lease.store";
/// etcd refuses writes at its quota, 2 GiB unless configured.
const SIZE_WARN_BYTES: i64 = 1_500 * 1_024 * 1_024;
const AHEAD_MS_MAX: i64 = 5_000;

pub(super) async fn examine_lease_store(config: &Config, clock: &Clock) -> Vec<Finding> {
    let Some(stores) = &config.lease.store else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    match stores {
        LeaseStores::Etcd(all) => {
            for store in all {
                findings.extend(examine_etcd(store, clock).await);
            }
        }
        LeaseStores::Postgres(all) => {
            for store in all {
                let (url, shown) = (store.url(), store.address.to_string());
                findings.extend(examine_postgres(CHECK, &shown, url.expose_secret(), config, clock).await);
            }
        }
    }
    let shards = stores.addresses().len();
    if shards > 1 {
        findings.extend(compare_shards(config, shards, clock).await);
    }
    findings
}

/// The shards as a set; each of them was inspected before.
async fn compare_shards(config: &Config, shards: usize, clock: &Clock) -> Option<Finding> {
    match store_inspection::shards(&config.lease, clock).await {
        Ok(()) => Some(Finding::ok(
            CHECK,
            format!("{shards} shards, in the order in which they were created"),
        )),
        Err(LeaseOpenError::Shard(ShardError { reason, remedy })) => {
            Some(Finding::fault(CHECK, reason, remedy))
        }
        Err(_) => None,
    }
}

async fn examine_etcd(store: &LeaseStoreConfig, clock: &Clock) -> Vec<Finding> {
    match inspect_store(store, clock.clone()).await {
        Ok(report) => judge(&report, clock.now().wall.timestamp_millis()),
        Err(LeaseOpenError::Etcd { reason, remedy, .. }) => vec![Finding::fault(CHECK, reason, remedy)],
        Err(error) => vec![Finding::fault(
            CHECK,
            error.to_string(),
            "check the files that [lease] names",
        )],
    }
}

fn judge(report: &EtcdReport, now_ms: i64) -> Vec<Finding> {
    let members = domain::format::counted(report.members as u64, "member", "members");
    let mut findings = vec![Finding::ok(
        CHECK,
        format!("reached: etcd {}, {members}", report.version),
    )];
    if report.members < 3 {
        findings.push(Finding::warning(
            CHECK,
            format!("{members} with a vote: the loss of one stops the lease service"),
            "run three members or five, each on a machine of its own",
        ));
    }
    for (address, why) in &report.down {
        findings.push(Finding::warning(
            CHECK,
            format!("{address} does not answer: {why}"),
            "etcdctl endpoint health --cluster # the lease service works while a majority of members answers",
        ));
    }
    for alarm in &report.alarms {
        findings.push(Finding::fault(
            CHECK,
            format!("etcd reports an alarm: {alarm}"),
            "etcdctl compact REVISION && etcdctl defrag --cluster && etcdctl alarm disarm",
        ));
    }
    if report.size_bytes > SIZE_WARN_BYTES {
        findings.push(Finding::warning(
            CHECK,
            format!(
                "the database has {} MiB; etcd refuses writes at its quota, 2048 MiB unless configured",
                report.size_bytes / 1_048_576
            ),
            "etcdctl defrag --cluster, --auto-compaction-retention=1h, or a larger --quota-backend-bytes",
        ));
    }
    findings.push(match (&report.rewound, report.exists) {
        (Some(why), _) => Finding::warning(
            CHECK,
            format!("it was restored from a snapshot: {why}. The next start raises every token"),
            "leasehold migrate --raise-epoch # does it now",
        ),
        (None, true) => Finding::ok(CHECK, "it is the cluster that wrote the store"),
        (None, false) => Finding::ok(CHECK, "there is no store yet; the first start creates it"),
    });
    if let Some(ahead_ms) = report
        .clock_ms
        .map(|ms| ms - now_ms)
        .filter(|ms| *ms > AHEAD_MS_MAX)
    {
        findings.push(Finding::fault(
            CHECK,
            format!(
                "its time is {} s ahead of this machine's clock: leases would live longer by that amount",
                ahead_ms / 1_000
            ),
            "timedatectl set-ntp true # if this clock is right, wait until it has caught up",
        ));
    }
    findings
}
