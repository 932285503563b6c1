//! What the commands print with `--json`.

use std::path::Path;

use super::assert_snapshot;
use crate::cli::{leasehold, run};
use crate::support::TestServer;
use crate::support::redis_keys::hold_key;
use crate::unlock::requests::REASON;

/// Standard output, as indented JSON; a line each where the command prints several values.
fn print(folder: &Path, name: &str, args: &[&str], env: &[(&str, &str)]) {
    let mut command = leasehold(folder);
    command.args(args).envs(env.iter().copied());
    let (_, out, err) = run(&mut command);
    let values = serde_json::Deserializer::from_str(&out).into_iter::<serde_json::Value>();
    let values: Vec<String> = values
        .map(|value| {
            let value = value.unwrap_or_else(|e| panic!("{e}: {out}{err}"));
            super::shape(&value)
        })
        .collect();
    assert!(!values.is_empty(), "{args:?}: {err}");
    let folder = folder.to_str().unwrap();
    assert_snapshot(
        &format!("cli-{name}"),
        &values.join("\n").replace(folder, "[folder]"),
    );
}

#[test]
fn json_of_commands_on_a_store() {
    // A user and a token, as an administrator makes them; then a configuration with a mistake.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let config = format!(
        "listen = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\n",
        folder.join("l.db").display()
    );
    std::fs::write(folder.join("leasehold.toml"), config).unwrap();
    print(folder, "migrate", &["migrate", "--json"], &[]);
    let mut add_token = leasehold(folder);
    add_token.args([
        "token", "create", "--name", "deploy", "--role", "client", "--prefix", "jobs/",
    ]);
    let (code, _, err) = run(&mut add_token);
    assert_eq!(code, 0, "{err}");
    let password = folder.join("password");
    std::fs::write(&password, "correct horse battery").unwrap();
    let mut add_user = leasehold(folder);
    add_user.args([
        "user",
        "add",
        "--name",
        "ada",
        "--role",
        "admin",
        "--password-stdin",
    ]);
    let (code, _, err) = run(add_user.stdin(std::fs::File::open(&password).unwrap()));
    assert_eq!(code, 0, "{err}");
    print(folder, "token-list", &["token", "list", "--json"], &[]);
    print(folder, "user-list", &["user", "list", "--json"], &[]);
    print(folder, "audit-verify", &["audit", "verify", "--json"], &[]);
    print(folder, "check-config", &["check-config", "--json"], &[]);
    let wrong = [("LEASEHOLD_LEASE__MAX_TTL", "soon")];
    print(folder, "check-config-errors", &["check-config", "--json"], &wrong);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_of_commands_on_a_server() {
    let server = TestServer::builder().redis().operator().start().await;
    hold_key(server.redis(), "lock:nightly-export").await;
    server.inventory_where("", |page| page["total"] == 1).await;
    let operator = server.operator().await;
    server.hold(&operator, "jobs/a").await;
    let (url, token) = (server.url(""), server.operator_token().to_owned());
    let folder = tempfile::tempdir().unwrap();
    let commands = tokio::task::spawn_blocking(move || {
        let env = [
            ("LEASEHOLD_SERVER", url.as_str()),
            ("LEASEHOLD_TOKEN", token.as_str()),
        ];
        print(
            folder.path(),
            "locks",
            &["locks", "--json", "--sort", "resource"],
            &env,
        );
        let unlock = [
            "unlock",
            "builtin",
            "jobs/a",
            "--reason",
            REASON,
            "--confirm-resource",
            "jobs/a",
            "--json",
        ];
        print(folder.path(), "unlock", &unlock, &env);
    });
    commands.await.unwrap();
}
