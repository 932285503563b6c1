//! `leasehold run` killed by `kill -9`, and its watcher: the command must not run on.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, kill_process, prlimit};

use super::client_and_server::{BEATS, ClientAndServer, SLACK, no_later, now};
use testkit::eventually;

const TTL: Duration = Duration::from_secs(3);
const GRACE: Duration = Duration::from_secs(1);
const FLAGS: [&str; 6] = ["--resource", "r", "--ttl", "3s", "--grace", "1s"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_supervisor_ends_the_command_and_the_lock_expires() {
    // The watcher sees the pipe close: a command that exits on SIGTERM gets its grace, any other is killed after it.
    for (script, tidied) in [
        (format!("trap 'echo >tidy; exit' TERM; {BEATS}"), true),
        (format!("trap '' TERM; {BEATS}"), false),
    ] {
        let server = ClientAndServer::start().await;
        let mut run = server.run(&FLAGS, &script);
        run.wrote("beats").await;
        run.send(Signal::KILL);
        let killed = now();
        assert!(run.child.wait().await.unwrap().code().is_none());
        run.is_over().await;
        let ran = run.last_beat().since(killed);
        assert!(ran <= GRACE + SLACK, "it ran on for {ran:?}");
        assert_eq!(run.file("tidy").exists(), tidied);
        eventually("the lock is free", || server.is_free("r")).await;
        no_later(now(), killed, TTL);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_watchdog_is_replaced() {
    // A killed watcher is replaced before the next renewal; the new one acts when we are killed, the command runs until then.
    let server = ClientAndServer::start().await;
    let mut run = server.run(&["--resource", "r", "--ttl", "300s", "--grace", "1s"], BEATS);
    run.wrote("beats").await;
    let first = run.watcher().await;
    kill_process(first, Signal::KILL).unwrap();
    eventually("there is another watcher", || async {
        let watcher = run.watcher().await;
        watcher != first
    })
    .await;
    run.beats_after(now()).await;
    // Waits until the watcher runs, which it reports to its parent only.
    run.beats_after(now().plus(TTL)).await;
    run.send(Signal::KILL);
    let killed = now();
    run.child.wait().await.unwrap();
    run.is_over().await;
    no_later(run.last_beat(), killed, GRACE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_new_watchdog_the_command_ends_with_its_lease() {
    // No file can be opened, so no process is started in the place of the killed watcher. The command ignores SIGTERM.
    let server = ClientAndServer::start().await;
    let mut run = server.run(&FLAGS, &format!("trap '' TERM; {BEATS}"));
    run.wrote("beats").await;
    let watcher = run.watcher().await;
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    prlimit(Some(run.pid()), Resource::Nofile, none).unwrap();
    kill_process(watcher, Signal::KILL).unwrap();
    let (code, stderr) = run.ended().await;
    assert!(stderr.contains("cannot be replaced"), "{code}: {stderr}");
    run.is_over().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_revoked_as_the_watchdog_dies_ends_the_command() {
    // The watcher is killed and the lease revoked, before it is replaced or just after.
    let server = ClientAndServer::start().await;
    let script = format!("echo $LEASEHOLD_LEASE_ID >lease; trap '' TERM; {BEATS}");
    let mut run = server.run(&["--resource", "r", "--ttl", "60s", "--grace", "1s"], &script);
    run.wrote("beats").await;
    kill_process(run.watcher().await, Signal::KILL).unwrap();
    let revoked = now();
    server.revoke(run.read("lease").trim()).await;
    assert_eq!(run.ended().await.0, 76);
    assert!(!run.is_running());
    no_later(run.last_beat(), revoked, Duration::from_secs(1) + GRACE);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killing_supervisor_and_watchdog_signals_the_command() {
    // Neither is left: the command's first process gets SIGTERM.
    let server = ClientAndServer::start().await;
    let mut run = server.run(&FLAGS, &format!("trap 'echo yes >signalled; exit' TERM; {BEATS}"));
    run.wrote("beats").await;
    let watcher = run.watcher().await;
    // Both are stopped first, so that neither observes the end of the other.
    kill_process(watcher, Signal::STOP).unwrap();
    run.send(Signal::STOP);
    kill_process(watcher, Signal::KILL).unwrap();
    run.send(Signal::KILL);
    run.child.wait().await.unwrap();
    run.wrote("signalled").await;
    run.is_over().await;
}
