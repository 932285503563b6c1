//! Output that cannot be written: a secret that is printed once must not be lost in silence, nor the result of an unlock.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::unlock::{REASON, command, held, is_held};
use super::{leasehold, run};
use crate::support::TestServer;

/// Exit code and standard error, with a pipe without a reader as standard output.
fn run_unread(command: &mut Command) -> (i32, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let (code, _, err) = run(command.stdout(writer));
    (code, err)
}

#[test]
fn a_token_that_cannot_be_printed_is_a_failure() {
    // It exists: the error names the command that revokes it.
    let folder = tempfile::tempdir().unwrap();
    let args = ["token", "create", "--name", "billing", "--role", "client"];
    let (code, err) = run_unread(leasehold(folder.path()).args(args));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("leasehold token revoke --name billing"), "{err}");
}

#[test]
fn a_password_ends_at_its_line_and_a_lost_link_is_a_failure() {
    // Standard input stays open, as in a terminal.
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "user",
        "add",
        "--name",
        "ada",
        "--role",
        "viewer",
        "--password-stdin",
    ];
    let mut adding = leasehold(folder.path())
        .args(args)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = adding.stdin.take().unwrap();
    writeln!(stdin, "correct horse battery").unwrap();
    assert!(adding.wait().unwrap().success());
    drop(stdin);
    let (code, err) = run_unread(leasehold(folder.path()).args(["user", "link", "--name", "ada"]));
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("create another"), "{err}");
}

#[tokio::test]
async fn a_result_that_cannot_be_printed_keeps_its_exit_code() {
    // Standard output is a full disk. With --json it gets the result alone.
    let console = TestServer::builder().operator().start().await;
    let lease = held(&console, "r").await;
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let args = ["r", "--reason", REASON, "--confirm-resource", "r", "--json"];
    let mut command = command(&console, &args);
    command.stdin(Stdio::null()).stdout(full);
    let (code, _, err) = tokio::task::spawn_blocking(move || run(&mut command))
        .await
        .unwrap();
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("the result cannot be printed"), "{err}");
    assert!(!is_held(&console, &lease).await);
}
