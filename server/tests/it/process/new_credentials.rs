//! Tokens and users that another process creates: accepted by a running server from the first request on.

use std::process::Stdio;
use std::time::Duration;

use ::testkit::{PostgresOptions, Throwaway};
use reqwest::{Client, StatusCode, redirect};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::running_server::Running;
use crate::support::caller;
use crate::support::form::Form as _;
use testkit::eventually;

const PASSWORD: &str = "correct horse battery";
/// Each at another moment of the poll that finds changes by itself.
const ATTEMPTS: usize = 4;

async fn leasehold(server: &Running, args: &[&str], input: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command
        .env_clear()
        .env("LEASEHOLD_STORE", server.store())
        .current_dir(server.folder.path())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

async fn status(server: &Running, token: &str) -> StatusCode {
    let client = caller::client(token, Duration::from_secs(30));
    let answer = client.get(server.url("/v1/backends")).send().await.unwrap();
    answer.status()
}

/// Objects made by the command line are known to `server` when the command has ended.
async fn command_line(server: &Running) {
    let browser = Client::builder()
        .redirect(redirect::Policy::none())
        .build()
        .unwrap();
    for number in 0..ATTEMPTS {
        let name = format!("made-{number}");
        let token = leasehold(
            server,
            &["token", "create", "--name", &name, "--role", "viewer"],
            "",
        )
        .await;
        assert_eq!(status(server, &token).await, StatusCode::OK, "token {number}");
        let add = [
            "user",
            "add",
            "--name",
            &name,
            "--role",
            "viewer",
            "--password-stdin",
        ];
        leasehold(server, &add, PASSWORD).await;
        let form = [("name", name.as_str()), ("password", PASSWORD)];
        let answer = browser.post(server.url("/sign-in")).form(&form).send().await;
        assert_eq!(answer.unwrap().status(), StatusCode::SEE_OTHER, "user {number}");
    }
}

#[tokio::test]
async fn tokens_and_users_of_the_cli_work_at_once_on_sqlite() {
    // As the README's example does it: `token create`, then the first request.
    let server = Running::start("").await;
    command_line(&server).await;
}

#[tokio::test]
async fn tokens_and_users_of_the_cli_work_at_once_on_postgres() {
    // Objects made by one server's API work at once on the other server, which also refuses those revoked here.
    let postgres = Throwaway::postgres(PostgresOptions {
        fast: true,
        ..PostgresOptions::default()
    })
    .await
    .unwrap();
    let first = Running::on(postgres.superuser_url(), "").await;
    let second = first.another().await;
    command_line(&second).await;
    for number in 0..ATTEMPTS {
        let new = json!({"name": format!("posted-{number}"), "grants": [{"role": "viewer"}]});
        let (code, made): (u16, Value) = first.post("/v1/tokens", &new).await;
        assert_eq!(code, 201, "{made}");
        let token = made["token"].as_str().unwrap();
        assert_eq!(status(&second, token).await, StatusCode::OK, "token {number}");
        let revoked = first
            .http
            .delete(first.url(&format!("/v1/tokens/posted-{number}")))
            .send();
        assert_eq!(revoked.await.unwrap().status(), StatusCode::OK);
        eventually("the revoked token is refused", async || {
            status(&second, token).await == StatusCode::UNAUTHORIZED
        })
        .await;
    }
}
