//! A server as docs/operations.md describes it: the binary in the path, a configuration, a folder of its own, and an
//! operator who runs the commands of the page. /var/lib/leasehold, /etc/leasehold and systemctl are replaced by test
//! folders and functions.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

use ::testkit::free_port;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::process::running_server::make_token;
use crate::support::caller;
use testkit::eventually;

const PAGE: &str = include_str!("../../../../../docs/operations.md");

/// The only block of shell commands that has these words in it.
pub(super) fn block(words: &str) -> String {
    let blocks = PAGE.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let found: Vec<&str> = blocks.filter(|block| block.contains(words)).collect();
    assert_eq!(found.len(), 1, "{words}: {found:?}");
    found[0].to_owned()
}

pub(super) struct Installation {
    pub(super) folder: tempfile::TempDir,
    pub(super) http: reqwest::Client,
    variables: Vec<(&'static str, String)>,
    child: Option<Child>,
    port: u16,
}

impl Installation {
    /// Not served yet. The token outlives a restore, since it was made before the backup.
    pub(super) fn new(store: &str, token: &str) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let toml = format!("listen = \"127.0.0.1:{port}\"\nstore = \"{store}\"\n");
        std::fs::write(folder.path().join("leasehold.toml"), toml).unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        let binary = folder.path().join("bin/leasehold");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_leasehold"), binary).unwrap();
        Self {
            http: caller::client(token, Duration::from_secs(60)),
            variables: vec![("LEASEHOLD_STORE", store.to_owned())],
            folder,
            child: None,
            port,
        }
    }

    /// On SQLite, with a token for everything.
    pub(super) async fn on_sqlite() -> (Self, String) {
        let made = tempfile::tempdir().unwrap();
        let token = make_token(&format!("sqlite:{}", made.path().join("leasehold.db").display())).await;
        let installation = Self::new("sqlite:leasehold.db", &token);
        for file in std::fs::read_dir(made.path()).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), installation.path().join(file.file_name())).unwrap();
        }
        (installation, token)
    }

    pub(super) fn with(mut self, name: &'static str, value: String) -> Self {
        self.variables.push((name, value));
        self
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).unwrap()
    }

    pub(super) async fn json(&self, path: &str) -> Value {
        let answer = self.http.get(self.url(path)).send().await.unwrap();
        answer.json().await.unwrap()
    }

    pub(super) async fn send(&self, method: reqwest::Method, path: &str, body: Value) -> Value {
        let request = self.http.request(method, self.url(path)).json(&body);
        let answer = request.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    pub(super) async fn start(&mut self) {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path().join("log"))
            .unwrap();
        let mut command = self.command("bin/leasehold");
        command.args(["serve", "--config", "leasehold.toml"]);
        command.stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().unwrap());
        let (url, http, path) = (self.url("/readyz"), self.http.clone(), self.path().join("log"));
        let child = self.child.as_mut().unwrap();
        eventually("the server is ready", async || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {:?}", std::fs::read_to_string(&path));
            let reply = http.get(&url).send().await;
            reply.is_ok_and(|answer| answer.status() == 200)
        })
        .await;
    }

    pub(super) async fn stop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        let pid = i32::try_from(child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
        assert!(child.wait().await.unwrap().success());
    }

    /// Starts a server that must fail to start; returns its error output.
    pub(super) async fn is_refused(&self) -> String {
        let mut command = self.command("bin/leasehold");
        command.args(["serve", "--config", "leasehold.toml"]);
        let output = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = output.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    }

    /// Runs the commands of the page unchanged, one shell for each part between two `systemctl` calls, which the test
    /// performs.
    pub(super) async fn types(&mut self, block: &str) -> String {
        let here = self.path().display().to_string();
        let text = block
            .replace("/var/lib/leasehold", &here)
            .replace("/etc/leasehold", &here);
        let mut printed = String::new();
        let mut piece = String::new();
        for line in text.lines() {
            let Some(reply) = line.strip_prefix("systemctl ") else {
                piece = format!("{piece}{line}\n");
                continue;
            };
            printed.push_str(&self.shell(&std::mem::take(&mut piece)).await);
            match reply.split(" leasehold").next().unwrap() {
                "stop" => self.stop().await,
                "start" => self.start().await,
                other => panic!("systemctl {other}"),
            }
        }
        printed.push_str(&self.shell(&piece).await);
        printed
    }

    async fn shell(&self, script: &str) -> String {
        let output = self.command("sh").args(["-euc", script]).output().await.unwrap();
        let Output {
            status,
            stdout,
            stderr,
        } = output;
        let printed = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        assert!(status.success(), "{script}\n{printed}");
        printed
    }

    fn command(&self, program: &str) -> Command {
        let path = std::env::var_os("PATH").unwrap();
        let mut command = Command::new(match program.contains('/') {
            true => self.path().join(program).into_os_string(),
            false => program.into(),
        });
        command
            .env_clear()
            .env(
                "PATH",
                format!("{}:{}", self.path().join("bin").display(), path.display()),
            )
            .envs(self.variables.iter().cloned())
            .current_dir(self.path())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}
