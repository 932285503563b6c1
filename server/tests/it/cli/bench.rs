//! `leasehold bench` leaves nothing behind; what it measures is for a quiet machine, not for a test.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::leasehold;
use crate::support::console::client;
use crate::support::eventually::eventually;
use crate::support::traces::{folders_in, somebody_works_in, who_works_in};

/// What the server of the soak was told to listen on, once it runs.
fn server_in(root: &Path) -> Option<String> {
    let leader = who_works_in(root).into_iter().next()?;
    let words = fs::read_to_string(format!("/proc/{leader}/cmdline")).ok()?;
    let words: Vec<&str> = words.split('\0').collect();
    let place = words.iter().position(|word| *word == "--listen")?;
    Some(words[place + 1].to_owned())
}

async fn serves(root: &Path) -> bool {
    let Some(address) = server_in(root) else {
        return false;
    };
    let client = client("none", Duration::from_secs(1));
    // Whatever it answers, it is up.
    client
        .get(format!("http://{address}/healthz"))
        .send()
        .await
        .is_ok()
}

#[tokio::test]
async fn a_soak_that_is_ended_takes_its_server_with_it() {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    // Neither runs a destructor.
    for signal in [Signal::TERM, Signal::KILL] {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut soak = leasehold(Path::new("/"))
            .args([
                "bench",
                "soak",
                "--minutes",
                "1",
                "--viewers",
                "1",
                "--changes",
                "1",
            ])
            .env("TMPDIR", root.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Before that, a server ends by itself when its folder is taken away.
        eventually("its server serves", async || serves(root.path()).await).await;
        kill_process(Pid::from_child(&soak), signal).unwrap();
        soak.wait().unwrap();
        eventually("the folder is gone", async || folders_in(root.path()).is_empty()).await;
        eventually("its server is gone", async || !somebody_works_in(root.path())).await;
    }
}
