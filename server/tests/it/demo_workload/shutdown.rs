//! The demo's shutdown, observed from another process: this binary runs again with one ignored test as the victim,
//! whose temporary folder is the parent's.

use super::start;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use testkit::eventually;
use testkit::leftovers::{entries_of, has_processes_in};

const WAY: &str = "LEASEHOLD_TEST_DEMO_ENDS_BY";

struct Victim {
    child: Child,
    /// Kept open: the victim writes to it until its end.
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
                "demo_workload::shutdown::victim",
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
            entries_of(root.path()).len(),
            10,
            "one for each of nine servers, one for the console's file"
        );
        assert!(has_processes_in(root.path()));
        // The victim waits for this line before it ends.
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
        eventually("the folders are gone", async || entries_of(root).is_empty()).await;
        eventually("the processes are gone", async || !has_processes_in(root)).await;
    }
}

/// Not a test of its own.
#[tokio::test]
#[ignore = "started by the other tests of this module"]
async fn victim() {
    let Some(way) = std::env::var_os(WAY) else { return };
    let demo = start(CancellationToken::new()).await;
    fs::write(demo.folder().join("console.db"), "x").unwrap();
    println!("\nthe demo runs");
    // Waits until the parent has checked it.
    std::io::stdin().read_line(&mut String::new()).unwrap();
    match way.to_str().unwrap() {
        "end" => {
            let root = std::env::temp_dir();
            demo.end().await;
            assert_eq!(entries_of(&root), Vec::<std::path::PathBuf>::new());
            assert!(!has_processes_in(&root));
            // The parent checks for output after this line and expects none.
        }
        "drop" => drop(demo),
        _ => std::future::pending().await,
    }
}

#[tokio::test]
async fn shutdown_leaves_no_process_and_no_folder() {
    // In good order (which the victim itself checks when `end` returns), dropped, and killed.
    let mut victim = Victim::start("end");
    assert!(victim.child.wait().unwrap().success());
    victim.leaves_nothing().await;
    Victim::start("drop").leaves_nothing().await;
    let victim = Victim::start("signal");
    kill_process(Pid::from_child(&victim.child), Signal::KILL).unwrap();
    victim.leaves_nothing().await;
}
