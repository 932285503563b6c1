//! The demo's end, seen from another process: this binary runs again with one ignored test as the victim, whose
//! temporary folder is ours.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use leasehold::demo;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::support::eventually::eventually;
use crate::support::traces::{folders_in, somebody_works_in};

const WAY: &str = "LEASEHOLD_TEST_DEMO_ENDS_BY";

struct Victim {
    child: Child,
    /// Kept open: the victim writes to it to its end.
    _output: BufReader<ChildStdout>,
    root: TempDir,
}

impl Victim {
    /// Returns once its demo runs.
    fn start(way: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "demo_workload::end::victim",
                "--ignored",
                "--nocapture",
            ])
            .env(WAY, way)
            .env("TMPDIR", root.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.by_ref().lines().map(Result::unwrap);
        assert!(
            lines.any(|line| line.ends_with("the demo runs")),
            "the victim did not start its demo"
        );
        assert_eq!(
            folders_in(root.path()).len(),
            5,
            "one for each server, one for the console's file"
        );
        assert!(somebody_works_in(root.path()));
        // It was told to wait for this: now it may end.
        drop(child.stdin.take());
        Self {
            child,
            _output: output,
            root,
        }
    }

    async fn leaves_nothing(mut self) {
        self.child.wait().unwrap();
        let root = self.root.path();
        eventually("the folders are gone", async || folders_in(root).is_empty()).await;
        eventually("the processes are gone", async || !somebody_works_in(root)).await;
    }
}

/// Not a test of its own.
#[tokio::test]
#[ignore = "started by the other tests of this module"]
async fn victim() {
    let Some(way) = std::env::var_os(WAY) else { return };
    let demo = demo::start(CancellationToken::new()).await.unwrap();
    fs::write(demo.folder().join("console.db"), "x").unwrap();
    println!("\nthe demo runs");
    // Until somebody has looked at it.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    match way.to_str().unwrap() {
        "end" => {
            let root = std::env::temp_dir();
            demo.end().await;
            assert_eq!(folders_in(&root), Vec::<std::path::PathBuf>::new());
            assert!(!somebody_works_in(&root));
            // The parent looks for what comes after: nothing.
        }
        "drop" => drop(demo),
        _ => std::future::pending().await,
    }
}

#[tokio::test]
async fn the_end_leaves_no_process_and_no_folder() {
    // In good order (which the victim itself checks when `end` returns), dropped, and killed.
    let mut victim = Victim::start("end");
    assert!(victim.child.wait().unwrap().success());
    victim.leaves_nothing().await;
    Victim::start("drop").leaves_nothing().await;
    let victim = Victim::start("signal");
    kill_process(Pid::from_child(&victim.child), Signal::KILL).unwrap();
    victim.leaves_nothing().await;
}
