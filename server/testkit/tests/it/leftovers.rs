//! Nothing is left behind, however the process that started the servers ends.
//!
//! Each test runs this binary again with one ignored test as the victim, which starts a Postgres and a Redis, prints
//! their location, and ends as requested.

use std::{
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use leasehold_testkit::{PostgresOptions, RedisOptions, Throwaway};
use rustix::process::{Pid, Signal, kill_process};

use leasehold_testkit::eventually;
use leasehold_testkit::leftovers::{entries_of, has_processes_in};

const WAY: &str = "LEASEHOLD_TEST_VICTIM_ENDS_BY";

struct Victim {
    child: Child,
    servers: Vec<(u32, PathBuf)>,
}

impl Victim {
    fn start(way: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "leftovers::victim", "--ignored", "--nocapture"])
            .env(WAY, way)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map(Result::unwrap);
        let servers: Vec<_> = lines
            .filter_map(|line| {
                let (pid, folder) = line.strip_prefix("server ")?.split_once(' ')?;
                Some((pid.parse().unwrap(), PathBuf::from(folder)))
            })
            .take(2)
            .collect();
        assert_eq!(servers.len(), 2, "the victim did not start its servers");
        Self { child, servers }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    async fn leaves_nothing(mut self) {
        self.child.wait().unwrap();
        for (pid, folder) in self.servers {
            eventually("the server is gone", || async { !super::runs(pid) }).await;
            eventually("the folder is gone", || async { !folder.exists() }).await;
        }
    }
}

fn command(way: &str) -> Command {
    // A shell's background job ignores SIGINT, and so would the victim of a test run in the background.
    let mut command = Command::new("env");
    command
        .arg("--default-signal=INT,TERM,HUP")
        .arg(std::env::current_exe().unwrap());
    command.args(["--exact", "leftovers::victim", "--ignored", "--nocapture"]);
    command.env(WAY, way).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Not a test by itself.
#[tokio::test]
#[ignore = "started by the other tests of this module"]
async fn victim() {
    let Some(way) = std::env::var_os(WAY) else { return };
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..Default::default()
    })
    .await
    .unwrap();
    let redis = Throwaway::redis(RedisOptions::default()).await.unwrap();
    if way == "signal while paused" {
        redis.pause().await.unwrap();
    }
    println!(
        "server {} {}",
        postgres.pid().unwrap(),
        postgres.folder().display()
    );
    println!("server {} {}", redis.pid().unwrap(), redis.folder().display());
    match way.to_str().unwrap() {
        "exit" => std::process::exit(0),
        "panic" => panic!("as ordered"),
        "never dropped" => {
            std::mem::forget(postgres);
            std::mem::forget(redis);
        }
        "end" => {}
        _ => std::future::pending().await,
    }
}

#[tokio::test]
async fn nothing_is_left_after_a_normal_end_a_panic_and_an_exit() {
    // By Drop in the first two; by the guard where nothing is dropped, as for servers in a static.
    for way in ["end", "panic", "exit", "never dropped"] {
        Victim::start(way).leaves_nothing().await;
    }
}

#[tokio::test]
async fn nothing_is_left_after_ctrl_c_and_kill() {
    // None of these runs a destructor. A paused Redis takes part in the last.
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        let victim = Victim::start("signal");
        victim.signal(signal);
        victim.leaves_nothing().await;
    }
    let victim = Victim::start("signal while paused");
    victim.signal(Signal::KILL);
    victim.leaves_nothing().await;
}

#[tokio::test]
async fn nothing_is_left_after_a_kill_while_starting() {
    // At moments of a Postgres's start: folder there, initdb at work, server starting. The victim's temporary folder
    // is our own, so that we see what it leaves although it cannot tell us.
    for file in ["", "data", "data/base/1", "data/postmaster.pid"] {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut victim = command("signal").env("TMPDIR", root.path()).spawn().unwrap();
        let begun = || async {
            entries_of(root.path())
                .iter()
                .any(|folder| folder.join(file).exists())
        };
        eventually("the start has come that far", begun).await;
        victim.kill().unwrap();
        victim.wait().unwrap();
        eventually("the folder is gone", || async {
            entries_of(root.path()).is_empty()
        })
        .await;
        eventually("the processes are gone", || async {
            !has_processes_in(root.path())
        })
        .await;
        assert!(entries_of(root.path()).is_empty());
    }
}
