//! Messages of `leasehold run` on standard error about a server that does not answer.

use std::time::Duration;

use super::client_and_server::ClientAndServer;
use crate::support::proxy::Link;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_during_the_wait_is_reported_at_once() {
    // One line at the first failed attempt, and one when the server answers: not one for each attempt.
    let server = ClientAndServer::start().await;
    server.link.set(Link::Cut).await;
    let flags = ["--resource", "r", "--ttl", "10s", "--wait", "1h"];
    let mut run = server.run(&flags, "true");
    let line = run.stderr_line().await;
    let address = server.linked();
    let start = format!(
        "leasehold: r: not acquired yet: cannot reach {address}: Connection refused (os error 111). "
    );
    let rest = line.strip_prefix(&start).expect(&line);
    let remedy = "Check that it runs, or set --server or LEASEHOLD_SERVER. Retrying until 20";
    assert!(rest.starts_with(remedy) && rest.ends_with(" UTC\n"), "{line}");
    // Time for further attempts, which are not seen from outside.
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.link.set(Link::Pass).await;
    let again = format!("leasehold: r: {address} answers again\n");
    assert_eq!(run.ended().await, (0, again));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_renewals_are_reported_with_the_end_of_the_lease() {
    // The link is cut over a renewal, and heals before the deadline.
    let server = ClientAndServer::start().await;
    let script = "echo yes >started; until [ -e done ]; do sleep 0.02; done";
    let mut run = server.run(&["--resource", "r", "--ttl", "10s"], script);
    run.wrote("started").await;
    server.link.set(Link::Cut).await;
    let line = run.stderr_line().await;
    let address = server.linked();
    let start = format!("leasehold: r: the lease is not renewed: at {address}, ");
    assert!(line.starts_with(&start), "{line}");
    assert!(
        line.contains("without a renewal the lease is lost at 20"),
        "{line}"
    );
    server.link.set(Link::Pass).await;
    let again = format!("leasehold: r: {address} answers again; the lease is held\n");
    assert_eq!(run.stderr_line().await, again);
    std::fs::write(run.file("done"), "").unwrap();
    assert_eq!(run.ended().await, (0, String::new()));
}
