//! `leasehold run` when its lease is lost: revoked, cut off, and how commands react to SIGTERM.

use std::time::Duration;

use ::lease::LeaseConfig;

use super::client_and_server::{BEATS, ClientAndServer, SLACK, no_later, now};
use crate::support::proxy::Link;

const TTL: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(1);
const FLAGS: [&str; 6] = ["--resource", "r", "--ttl", "3s", "--grace", "1s"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revocation_ends_the_command_with_actor_and_reason() {
    // TTL 60 s; the command gets SIGTERM and has time to tidy up; 76.
    let server = ClientAndServer::start().await;
    let script = "trap 'echo tidied >tidy; exit 0' TERM; echo $LEASEHOLD_LEASE_ID >lease; while :; do sleep 0.02; done";
    let mut run = server.run(&["--resource", "r", "--ttl", "60s"], script);
    run.wrote("lease").await;
    let revoked = now();
    server.revoke(run.read("lease").trim()).await;
    let (code, stderr) = run.ended().await;
    no_later(now(), revoked, Duration::from_secs(1));
    assert_eq!((code, run.read("tidy").as_str()), (76, "tidied\n"), "{stderr}");
    for word in ["r: the lease was revoked by dana", "stuck since noon", "audit-7"] {
        assert!(stderr.contains(word), "{stderr}");
    }
}

async fn ends_in_time(link: Link, script: &str) {
    let server = ClientAndServer::start().await;
    let mut run = server.run(&FLAGS, script);
    run.wrote("beats").await;
    // Over a renewal.
    run.beats_after(now().plus(TTL / 2)).await;
    server.link.set(link).await;
    let broken = now();
    let (code, stderr) = run.ended().await;
    assert_eq!(code, 76, "{stderr}");
    assert!(stderr.contains("could not be renewed in time"), "{stderr}");
    assert!(!run.is_running());
    let ran = run.last_beat().since(broken);
    assert!(ran >= TTL / 2, "it gave up after {ran:?}");
    assert!(ran <= TTL + GRACE + SLACK, "it ran on for {ran:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_network_a_command_ends_by_the_deadline() {
    // Trap 24: refused connections; not at the first error, and not past the deadline.
    ends_in_time(Link::Cut, BEATS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_a_half_open_link_a_command_ends_by_the_deadline() {
    // Trap 24: the link drops all data without closing connections.
    ends_in_time(Link::Blackhole, BEATS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_renewal_responses_a_command_ends_by_the_deadline() {
    // Trap 27: the server renews the lease, but the answer never arrives.
    ends_in_time(Link::OnlyToServer, BEATS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_ignores_sigterm_is_killed_after_the_grace() {
    // With a child of its own that ignores it too.
    let script = format!("trap '' TERM; (while :; do sleep 0.05; done) & {BEATS}");
    ends_in_time(Link::Cut, &script).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_survives_outages_shorter_than_its_ttl() {
    // A server restart and a network cut, each for a third of the TTL: same token, and the command's own exit code.
    // The last third is tolerance for a slow machine that stops and starts a server.
    let ttl = Duration::from_secs(6);
    let mut server = ClientAndServer::start().await;
    let script = format!("({BEATS}) & until [ -e done ]; do sleep 0.02; done; kill $!; exit 5");
    let mut run = server.run(&["--resource", "r", "--ttl", "6s", "--grace", "1s"], &script);
    run.wrote("beats").await;
    server.stop_serving().await;
    // The server is away for less than the TTL.
    tokio::time::sleep(ttl / 3).await;
    server.serve(LeaseConfig::default()).await;
    run.beats_after(now().plus(ttl)).await;
    server.link.set(Link::Cut).await;
    // The link is cut for less than the TTL.
    tokio::time::sleep(ttl / 3).await;
    server.link.set(Link::Pass).await;
    run.beats_after(now().plus(ttl)).await;
    assert_eq!(server.resource("r").await["holder"]["fencingToken"], 1);
    std::fs::write(run.file("done"), "").unwrap();
    let (code, stderr) = run.ended().await;
    assert_eq!(code, 5, "{stderr}");
    // No loss is reported: only that renewals failed, and work again.
    let is_of_an_outage = |line: &str| line.contains(" is not renewed: ") || line.contains(" answers again");
    assert!(stderr.lines().all(is_of_an_outage), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_starts_under_the_lease_whose_reply_was_lost() {
    // The grant's answer never arrives: the same grant is found again, and one token is spent.
    let server = ClientAndServer::start().await;
    server.link.set(Link::OnlyToServer).await;
    let mut run = server.run(
        &["--resource", "r", "--ttl", "30s", "--owner", "w1"],
        "echo $LEASEHOLD_FENCING_TOKEN >token",
    );
    server.held_by("r", "w1").await;
    server.link.set(Link::Cut).await;
    server.link.set(Link::Pass).await;
    let (code, stderr) = run.ended().await;
    assert_eq!((code, run.read("token").as_str()), (0, "1\n"), "{stderr}");
    assert_eq!(server.resource("r").await["lastFencingToken"], 1);
}
