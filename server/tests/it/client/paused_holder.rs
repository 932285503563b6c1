//! `leasehold run` stopped by SIGSTOP, alone and with its command. A stopped process can neither renew nor end its
//! command.

use std::time::Duration;

use leasehold_client::Request;
use rustix::process::{Signal, kill_process, kill_process_group};
use testkit::eventually;

use super::client_and_server::{BEATS, ClientAndServer, SLACK, no_later, now};

const TTL: Duration = Duration::from_secs(2);
const GRACE: Duration = Duration::from_secs(1);
const FLAGS: [&str; 6] = ["--resource", "r", "--ttl", "2s", "--grace", "1s"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_supervisor_ends_its_command_by_the_deadline() {
    // The command runs while no process renews: the watcher ends it, even when it ignores SIGTERM; continued, the
    // client exits with 76.
    for trap in ["", "trap '' TERM; "] {
        let server = ClientAndServer::start().await;
        let mut run = server.run(&FLAGS, &format!("{trap}{BEATS}"));
        run.wrote("beats").await;
        run.beats_after(now().plus(TTL)).await;
        run.send(Signal::STOP);
        let stopped = now();
        run.is_over().await;
        let ran = run.last_beat().since(stopped);
        assert!(ran <= TTL + GRACE + SLACK, "it ran on for {ran:?}");
        assert!(ran >= TTL / 2, "it was ended after {ran:?}");
        run.send(Signal::CONT);
        let (code, stderr) = run.ended().await;
        assert_eq!(code, 76, "{stderr}");
        assert!(
            stderr.contains("is silent and the lease's deadline has passed"),
            "{stderr}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_paused_with_its_supervisor_never_resumes() {
    // Both are stopped past the deadline and the grace: the watcher kills the stopped command.
    let server = ClientAndServer::start().await;
    let mut run = server.run(&FLAGS, &format!("echo $$ >pid; trap '' TERM; {BEATS}"));
    let command = run.command().await;
    run.wrote("beats").await;
    run.send(Signal::STOP);
    kill_process_group(command, Signal::STOP).unwrap();
    let stopped = now();
    run.is_over().await;
    no_later(now(), stopped, TTL + GRACE);
    run.send(Signal::CONT);
    assert_eq!(run.ended().await.0, 76);
    assert!(run.last_beat() <= stopped.plus(Duration::from_millis(100)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_full_pause_the_deadline_is_checked_first() {
    // All of them stopped, as by a paused machine, past the deadline and the grace: on waking it is killed, at once.
    let server = ClientAndServer::start().await;
    let mut run = server.run(&FLAGS, &format!("echo $$ >pid; trap '' TERM; {BEATS}"));
    let (command, watcher) = (run.command().await, run.watcher().await);
    run.wrote("beats").await;
    run.send(Signal::STOP);
    kill_process(watcher, Signal::STOP).unwrap();
    kill_process_group(command, Signal::STOP).unwrap();
    // All are stopped until the lease has ended on the server.
    tokio::time::sleep(TTL + GRACE + Duration::from_millis(500)).await;
    let woken = now();
    kill_process_group(command, Signal::CONT).unwrap();
    kill_process(watcher, Signal::CONT).unwrap();
    run.send(Signal::CONT);
    let (code, stderr) = run.ended().await;
    assert_eq!(code, 76, "{stderr}");
    let ran = run.last_beat().since(woken);
    assert!(ran <= GRACE, "not at once, but after {ran:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_pause_loses_no_lease() {
    // Stopped for a third of the TTL, then continued: the lease lives on under its token.
    let server = ClientAndServer::start().await;
    let mut run = server.run(
        &["--resource", "r", "--ttl", "6s"],
        &format!("({BEATS}) & until [ -e done ]; do sleep 0.02; done; kill $!"),
    );
    run.wrote("beats").await;
    run.send(Signal::STOP);
    // Stopped for less than the TTL.
    tokio::time::sleep(Duration::from_secs(2)).await;
    run.send(Signal::CONT);
    run.beats_after(now().plus(Duration::from_secs(6))).await;
    assert_eq!(server.resource("r").await["holder"]["fencingToken"], 1);
    std::fs::write(run.file("done"), "").unwrap();
    assert_eq!(run.ended().await.0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_z_stops_the_command_too() {
    // SIGTSTP: neither beats while both are stopped; SIGCONT to us continues both.
    let server = ClientAndServer::start().await;
    let mut run = server.run(
        &["--resource", "r", "--ttl", "20s"],
        &format!("({BEATS}) & until [ -e done ]; do sleep 0.02; done; kill $!"),
    );
    run.wrote("beats").await;
    run.send(Signal::TSTP);
    eventually("it is still", || async {
        let before = run.last_beat();
        // Several beats of the command.
        tokio::time::sleep(Duration::from_millis(300)).await;
        run.last_beat() == before
    })
    .await;
    run.send(Signal::CONT);
    run.beats_after(now()).await;
    std::fs::write(run.file("done"), "").unwrap();
    assert_eq!(run.ended().await.0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_z_stops_a_wait_for_the_lock() {
    // SIGTSTP while another owner holds the lock; continued, it gets the lock.
    let server = ClientAndServer::start().await;
    let first = Request::new("r", Duration::from_secs(30));
    let first = server.client().acquire(first).await.unwrap();
    let mut run = server.run(&["--resource", "r", "--ttl", "20s", "--wait", "60s"], "true");
    eventually("it waits", || async {
        server.resource("r").await["waiters"][0].is_object()
    })
    .await;
    run.send(Signal::TSTP);
    let stat = format!("/proc/{}/stat", run.pid().as_raw_nonzero());
    eventually("it is stopped", || async {
        let stat = std::fs::read_to_string(&stat).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T')
    })
    .await;
    run.send(Signal::CONT);
    first.release().await.unwrap();
    assert_eq!(run.ended().await.0, 0);
}
