//! `leasehold run` without faults, and when the lock is not available: exit codes, environment, signals.

use std::time::Duration;

use leasehold_client::Request;
use rustix::process::{Signal, kill_process_group};

use tokio::io::AsyncReadExt;

use super::client_and_server::{ClientAndServer, now};
use crate::support::proxy::Link;
use testkit::eventually;

const FLAGS: [&str; 4] = ["--resource", "r", "--ttl", "10s"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_exit_code_is_that_of_the_command() {
    // Success, failure, death by a signal, no such command, one that cannot be run; free at once each time.
    let server = ClientAndServer::start().await;
    for (command, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 3"], 3),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["/nowhere/to/be/found"], 127),
        (&["/etc/passwd"], 126),
    ] {
        let mut run = server.run_command(&FLAGS, command);
        let (ended, stderr) = run.ended().await;
        assert_eq!(ended, code, "{command:?}: {stderr}");
        assert!(server.is_free("r").await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_command_gets_its_lease_in_the_environment() {
    // Resource, lease id and token of this very grant, the second one; arguments and input arrive as they are.
    let server = ClientAndServer::start().await;
    server.run_command(&FLAGS, &["true"]).ended().await;
    let script = "printenv LEASEHOLD_RESOURCE LEASEHOLD_LEASE_ID LEASEHOLD_FENCING_TOKEN >environment; cat >input; \
                  until [ -e seen ]; do sleep 0.02; done";
    let mut run = server.run(&[&FLAGS[..], &["--owner", "w7"]].concat(), script);
    run.wrote("environment").await;
    let environment: Vec<String> = run.read("environment").lines().map(str::to_owned).collect();
    let seen = server.resource("r").await;
    assert_eq!((environment[0].as_str(), environment[2].as_str()), ("r", "2"));
    assert_eq!(
        (&seen["holder"]["ownerId"], &seen["holder"]["fencingToken"]),
        (&"w7".into(), &2.into())
    );
    let lease = server.get(&format!("/v1/locks/{}", environment[1])).await;
    assert_eq!(lease["state"], "held");
    std::fs::write(run.file("seen"), "").unwrap();
    assert_eq!(run.ended().await, (0, String::new()));
    assert_eq!(run.read("input"), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_lock_the_exit_code_is_75() {
    // The lock is held by another owner, with and without a wait; then the server is down.
    let server = ClientAndServer::start().await;
    let held = server
        .client()
        .acquire(Request::new("r", Duration::from_secs(30)).owner("w1"))
        .await
        .unwrap();
    for wait in ["0s", "1s"] {
        let mut run = server.run(&[&FLAGS[..], &["--wait", wait]].concat(), "echo >ran");
        let (code, stderr) = run.ended().await;
        assert_eq!(code, 75);
        assert!(stderr.contains("r was not obtained: held by w1"), "{stderr}");
        assert!(!run.file("ran").exists());
    }
    held.release().await.unwrap();
    server.link.set(Link::Cut).await;
    let mut run = server.run(&FLAGS, "echo >ran");
    let (code, stderr) = run.ended().await;
    assert_eq!((code, run.file("ran").exists()), (75, false));
    assert!(stderr.contains("Connection refused"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_arguments_exit_2() {
    // Rejected by the flags alone, and by the server.
    let server = ClientAndServer::start().await;
    for flags in [
        &["--resource", "r"][..],
        &["--resource", "r", "--ttl", "1500ms"],
        &["--resource", "r", "--ttl", "10s", "--grace", "soon"],
        &["--resource", " r", "--ttl", "10s"],
        &["--resource", "r", "--ttl", "9999s"],
    ] {
        let (code, stderr) = server.run(flags, "true").ended().await;
        assert_eq!(code, 2, "{flags:?}: {stderr}");
    }
    let (code, _) = server.run_command(&FLAGS, &[]).ended().await;
    assert_eq!(code, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_ends_with_the_lock() {
    // Queued behind another owner for 1 s; then the command runs under the next token.
    let server = ClientAndServer::start().await;
    let first = server
        .client()
        .acquire(Request::new("r", Duration::from_secs(30)))
        .await
        .unwrap();
    let mut run = server.run(
        &[&FLAGS[..], &["--wait", "30s"]].concat(),
        "echo $LEASEHOLD_FENCING_TOKEN >token",
    );
    eventually("it waits", || async {
        server.resource("r").await["waiters"][0].is_object()
    })
    .await;
    // The time in the queue.
    tokio::time::sleep(Duration::from_secs(1)).await;
    first.release().await.unwrap();
    assert_eq!(run.ended().await.0, 0);
    assert_eq!(run.read("token"), "2\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_while_waiting_leaves_the_queue() {
    // The exit code is 128 plus the signal's number; the queue position is removed.
    let server = ClientAndServer::start().await;
    let _first = server
        .client()
        .acquire(Request::new("r", Duration::from_secs(30)))
        .await
        .unwrap();
    let mut run = server.run(&[&FLAGS[..], &["--wait", "30s"]].concat(), "echo >ran");
    eventually("it waits", || async {
        server.resource("r").await["waiters"][0].is_object()
    })
    .await;
    run.send(Signal::INT);
    assert_eq!(run.ended().await.0, 130);
    eventually("the queue is empty", || async {
        server.resource("r").await["waiters"][0].is_null()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ctrl_c_during_the_acquire_leaves_no_lock() {
    // The server has granted the lock, and its answer is held back on the way.
    let server = ClientAndServer::start().await;
    server.link.set(Link::OnlyToServer).await;
    let mut run = server.run(&["--resource", "r", "--ttl", "60s"], "exec sleep 60");
    eventually("it is granted", || async {
        server.resource("r").await["holder"].is_object()
    })
    .await;
    let accepted = || server.link.traffic().accepted();
    let before = accepted();
    run.send(Signal::INT);
    // On a new connection, since the first one waits for its answer.
    eventually("the acquire is repeated", async || accepted() > before).await;
    server.link.set(Link::Pass).await;
    assert_eq!(run.ended().await.0, 130);
    assert!(server.is_free("r").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signals_reach_the_command_once() {
    // Each signal to `leasehold run` alone; then SIGINT to its whole group, as Ctrl-C in a terminal does.
    let server = ClientAndServer::start().await;
    let script = "for s in HUP INT QUIT TERM USR1 USR2; do trap \"echo $s >>got\" $s; done; echo $$ >pid; \
                  until [ -e done ]; do sleep 0.02; done; exit 9";
    let mut run = server.run(&FLAGS, script);
    run.command().await;
    let mut expected = String::new();
    for (signal, name) in [
        (Signal::HUP, "HUP"),
        (Signal::INT, "INT"),
        (Signal::QUIT, "QUIT"),
        (Signal::TERM, "TERM"),
        (Signal::USR1, "USR1"),
        (Signal::USR2, "USR2"),
    ] {
        run.send(signal);
        expected += &format!("{name}\n");
        eventually("it was forwarded", || async { run.read("got") == expected }).await;
    }
    kill_process_group(run.pid(), Signal::INT).unwrap();
    expected += "INT\n";
    eventually("it was forwarded", || async { run.read("got") == expected }).await;
    // A second one would have come by now: a later signal has.
    run.send(Signal::USR1);
    expected += "USR1\n";
    eventually("it was forwarded", || async { run.read("got") == expected }).await;
    std::fs::write(run.file("done"), "").unwrap();
    assert_eq!(run.ended().await.0, 9);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_processes_end_before_the_lock_is_released() {
    // A job in the background, deaf to SIGTERM, when the command ends with 4: killed after the grace.
    let server = ClientAndServer::start().await;
    let script = "sh -c 'trap \"\" TERM; while :; do echo >>left; sleep 0.05; done' & until [ -s left ]; do :; done; exit 4";
    let mut run = server.run(&[&FLAGS[..], &["--grace", "500ms"]].concat(), script);
    let began = now();
    let (code, stderr) = run.ended().await;
    assert_eq!(code, 4, "{stderr}");
    assert!(!run.is_running() && now().since(began) >= Duration::from_millis(500));
    assert!(server.is_free("r").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn child_processes_may_use_a_grace_beyond_the_ttl() {
    // The lease is renewed while they end: the watcher does not report a deadline that has passed.
    let server = ClientAndServer::start().await;
    let script = "sh -c 'trap \"\" TERM; while :; do echo >>left; sleep 0.05; done' & until [ -s left ]; do :; done; exit 4";
    let flags = ["--resource", "r", "--ttl", "3s", "--grace", "5s"];
    let mut run = server.run(&flags, script);
    let (code, stderr) = run.ended().await;
    assert_eq!(code, 4, "{stderr}");
    assert!(!stderr.contains("is silent"), "{stderr}");
    assert!(!run.is_running() && server.is_free("r").await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_that_reads_the_terminal_is_explained() {
    // Under `script`, which makes a terminal; the message comes, and a hang-up still ends it.
    let server = ClientAndServer::start().await;
    let line = format!(
        "{} run --resource r --ttl 10s -- sh -c 'read line'",
        env!("CARGO_BIN_EXE_leasehold")
    );
    let mut terminal = tokio::process::Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("LEASEHOLD_SERVER", server.linked())
        .env("LEASEHOLD_TOKEN", server.token())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut errors = String::new();
    let mut out = terminal.stdout.take().unwrap();
    while !errors.contains("reads from the terminal") {
        let mut chunk = [0; 1024];
        let len = tokio::time::timeout(Duration::from_secs(30), out.read(&mut chunk))
            .await
            .expect(&errors)
            .unwrap();
        assert_ne!(len, 0, "{errors}");
        errors.push_str(&String::from_utf8_lossy(&chunk[..len]));
    }
    // The terminal hangs up: SIGHUP is forwarded to the stopped command.
    drop(terminal.stdin.take());
    terminal.start_kill().unwrap();
    eventually("the lock is free", || server.is_free("r")).await;
}
