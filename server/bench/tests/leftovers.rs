//! The bench leaves nothing behind. Its measurements need an idle machine and are not tested.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use testkit::eventually;
use testkit::leftovers::{entries_of, has_processes_in, processes_in};

/// The listen address of the soak's server, once it runs.
fn server_in(root: &Path) -> Option<String> {
    let leader = processes_in(root).into_iter().next()?;
    let words = fs::read_to_string(format!("/proc/{leader}/cmdline")).ok()?;
    let words: Vec<&str> = words.split('\0').collect();
    let place = words.iter().position(|word| *word == "--listen")?;
    Some(words[place + 1].to_owned())
}

async fn serves(root: &Path) -> bool {
    let Some(address) = server_in(root) else {
        return false;
    };
    let Ok(client) = reqwest::Client::builder().timeout(Duration::from_secs(1)).build() else {
        return false;
    };
    // Any response means that it is up.
    client
        .get(format!("http://{address}/healthz"))
        .send()
        .await
        .is_ok()
}

#[tokio::test]
async fn an_interrupted_soak_ends_its_server() {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    // Neither signal runs a destructor.
    for signal in [Signal::TERM, Signal::KILL] {
        let root = tempfile::tempdir().unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut soak = Command::new(env!("CARGO_BIN_EXE_leasehold-bench"))
            .args(["soak", "--minutes", "1", "--viewers", "1", "--changes", "1"])
            .env("TMPDIR", root.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Before it serves, the server would end by itself without its folder.
        eventually("its server serves", async || serves(root.path()).await).await;
        kill_process(Pid::from_child(&soak), signal).unwrap();
        soak.wait().unwrap();
        eventually("the folder is gone", async || entries_of(root.path()).is_empty()).await;
        eventually("its server is gone", async || !has_processes_in(root.path())).await;
    }
}
