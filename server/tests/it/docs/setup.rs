//! The set-up of a new machine.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ::testkit::leftovers::processes_in;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use testkit::eventually;

#[test]
fn a_step_with_many_packages_has_its_log() {
    // A list of packages is longer than the name of a file may be.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cache = tempfile::tempdir().unwrap();
    let script = r#". scripts/lib/common.sh; quietly "apt-get install $(printf 'package-%s ' {1..60})" echo installed"#;
    let output = Command::new("bash")
        .args(["-euc", script])
        .current_dir(root)
        .env("LEASEHOLD_CACHE", cache.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let logs: Vec<_> = std::fs::read_dir(cache.path().join("log")).unwrap().collect();
    let [Ok(log)] = logs.as_slice() else {
        panic!("{logs:?}")
    };
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "installed\n");
}

#[tokio::test]
async fn an_interrupted_run_ends_its_steps_in_background() {
    // Ctrl-C while a step in the background has a process of its own, which is recognized by its folder.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = tempfile::tempdir().unwrap();
    let script = r#". scripts/lib/common.sh; . scripts/lib/steps.sh
        inside() { cd "$FOLDER" && { sleep 600 & wait; }; }
        background() { step inside inside; }
        steps_in_background background
        step wait sleep 600"#;
    // Of a run in the background itself, SIGINT is ignored.
    let mut run = Command::new("env")
        .args(["--default-signal=INT", "bash", "-euc", script])
        .current_dir(root)
        .env("FOLDER", folder.path())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually("the step has started its process", async || {
        processes_in(folder.path()).len() > 1
    })
    .await;
    let pid = |pid: u32| Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    let started = processes_in(folder.path());
    kill_process_group(pid(run.id()), Signal::INT).unwrap();
    run.wait().unwrap();
    // A process that has ended has no folder, even before it is reaped.
    let ended = async {
        while !processes_in(folder.path()).is_empty() {
            // The processes are not children of this one, so nothing reports their end.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(5), ended).await;
    for left in processes_in(folder.path()) {
        let _gone = kill_process(pid(left), Signal::KILL);
    }
    assert!(ended.is_ok(), "{started:?} outlived the script");
}
