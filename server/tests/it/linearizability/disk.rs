//! A full disk. SQLite: the folder of the store is a disk of a few MiB, which fills up and is emptied again. Postgres: its
//! processes may not write to files any more, and then may again.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use tokio::time::sleep;

use super::cluster::Cluster;

/// Fills the disk to the last byte. Existing files keep their contents.
fn fill_up(file: &std::path::Path) {
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    let mut file = opened.unwrap();
    for size in [64 * 1_024, 1] {
        while file.write_all(&vec![b'x'; size]).is_ok() {}
    }
}

/// Fills the disk until the service answers 503 to every write, then frees space.
pub(super) async fn fill(cluster: &mut Cluster) -> String {
    let filler = cluster.servers[0].seen_by_it("disk/filler");
    // Space that the store frees meanwhile is filled as well.
    until_granted(cluster, || fill_up(&filler)).await;
    sleep(Duration::from_secs(1)).await;
    std::fs::remove_file(&filler).unwrap();
    let log = cluster.servers[0].read_log();
    let seen = "database or disk is full";
    assert!(log.contains(seen), "{log}");
    format!("SQLite: {seen}")
}

/// Probes until ten answers were 503.
async fn until_granted(cluster: &mut Cluster, before_each: impl Fn()) {
    let (mut refused, mut tries) = (0, 0);
    while refused < 10 {
        before_each();
        let (status, _) = cluster.probe("disk").await;
        refused += u32::from(status == 503);
        tries += 1;
        assert!(tries < 1_000, "a full disk is not noticed");
        sleep(Duration::from_millis(5)).await;
    }
}

/// No process of Postgres may write far into a file: its log of changes fails like on a full disk, and it gives up; it is
/// started again when there is room.
pub(super) async fn fill_postgres(cluster: &mut Cluster) -> String {
    let first = cluster.postgres.as_ref().unwrap().pid().unwrap();
    until_granted(cluster, || {
        family(first).into_iter().for_each(|pid| limit(pid, "262144:"));
    })
    .await;
    family(first).into_iter().for_each(|pid| limit(pid, "unlimited:"));
    let postgres = cluster.postgres.as_ref().unwrap();
    postgres.restart().await.unwrap();
    let log = std::fs::read_to_string(postgres.log()).unwrap();
    let seen = "File too large";
    assert!(log.contains(seen), "{log}");
    format!("Postgres: {seen}")
}

/// As the account that runs the process: root in a container may not, and root is not needed for it.
fn limit(pid: u32, fsize: &str) {
    // A process that has ended meanwhile needs no limit.
    let Ok(of) = std::fs::metadata(format!("/proc/{pid}")) else {
        return;
    };
    let output = Command::new("prlimit")
        .args(["--pid", &pid.to_string(), &format!("--fsize={fsize}")])
        .uid(of.uid())
        .gid(of.gid())
        .output()
        .expect("prlimit is not installed; install it with: apt-get install -y util-linux");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let gone = text.contains("No such process");
    assert!(output.status.success() || gone, "{text}");
}

/// A process and its children.
fn family(first: u32) -> Vec<u32> {
    let children =
        std::fs::read_to_string(format!("/proc/{first}/task/{first}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
    std::iter::once(first).chain(children).collect()
}
