//! An execution that is delayed between its claim and the request is not sent after its deadline.

use crate::support::TestServer;
use crate::unlock::requests::state;
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use testkit::eventually;

/// Blocks neither this side nor writers.
fn open_pipe(file: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(file).unwrap()
}

#[tokio::test]
async fn nothing_is_sent_after_the_deadline_of_an_execution() {
    // The entry of the claim is exported to a pipe without a reader, which delays the execution. Meanwhile more than a
    // minute passes.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("checkpoints");
    let made = std::process::Command::new("mkfifo").arg(&file).status();
    assert!(made.unwrap().success());
    let reader = open_pipe(&file);
    let toml = format!("audit_checkpoint_file = {file:?}\n");
    let server = TestServer::builder().config(&toml).start().await;
    let operator = server.operator().await;
    let held = server.hold(&operator, "r").await;
    let id = server.begun(&operator, &held).await;
    drop(reader);
    let passing = async {
        eventually("the execution has begun", async || {
            server.unlock_state(&operator, &id).await["state"] == "outcome_unknown"
        })
        .await;
        server.serving.clock.advance(Duration::from_secs(61));
        open_pipe(&file)
    };
    let (reply, _reader) = tokio::join!(server.confirm(&operator, &id, "r"), passing);
    assert_eq!(state(&reply), (200, "refused"), "{}", reply.1);
    let why = reply.1["outcome"]["why"].as_str().unwrap();
    assert!(why.contains("was not sent within 60 s"), "{why}");
    assert!(server.is_held(&operator, &held).await);
    assert_eq!(
        server.unlock_phases(&id).await,
        ["intent pending", "act begun", "outcome refused"]
    );
    // Later entries go to a file, which has no reader to wait for.
    std::fs::remove_file(&file).unwrap();
}
