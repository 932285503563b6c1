//! A lease service on a port of its own, a link to it that can be broken, and commands run under its leases.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use ::lease::LeaseConfig;
use ::testkit::free_port;
use domain::access::Role;
use domain::lease::{LeaseId, Revocation};
use leasehold::identity::Secret;
use leasehold_client::{Builder, Client, Moment, clock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::support::proxy::Proxy;
use crate::support::{Store, TestServer, caller};
use testkit::eventually;

/// Tolerance for a slow machine, added to each time limit of the contract.
pub(super) const SLACK: Duration = Duration::from_millis(1_500);

pub(super) struct ClientAndServer {
    store: Store,
    port: u16,
    server: Option<TestServer>,
    /// In front of the server.
    pub(super) link: Proxy,
    token: Option<Secret>,
    http: reqwest::Client,
}

impl ClientAndServer {
    pub(super) async fn start() -> Self {
        Self::start_with(LeaseConfig::default()).await
    }

    pub(super) async fn start_with(config: LeaseConfig) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let port = free_port().unwrap();
        let mut running = Self {
            store: Store::sqlite(),
            port,
            server: None,
            link: Proxy::start(port).await,
            token: None,
            http: reqwest::Client::new(),
        };
        running.serve(config).await;
        running
    }

    /// Again on the same port and store.
    pub(super) async fn serve(&mut self, config: LeaseConfig) {
        let server = TestServer::builder()
            .listen(SocketAddr::from((Ipv4Addr::LOCALHOST, self.port)))
            .lease(config)
            .start_on(self.store.shared())
            .await;
        if self.token.is_none() {
            let token = caller::token(&server.serving, Role::Client).await;
            self.http = caller::client(token.expose(), Duration::from_secs(30));
            self.token = Some(token);
        }
        self.server = Some(server);
    }

    pub(super) async fn stop_serving(&mut self) {
        self.server.take().unwrap().stop().await;
    }

    /// The token of the client programs under test.
    pub(super) fn token(&self) -> &str {
        self.token.as_ref().unwrap().expose()
    }

    /// Without a link, and with the token.
    pub(super) fn http(&self) -> &reqwest::Client {
        &self.http
    }

    /// Past the link.
    pub(super) fn direct(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Over the link.
    pub(super) fn linked(&self) -> String {
        format!("http://127.0.0.1:{}", self.link.port())
    }

    /// Over the link.
    pub(super) fn builder(&self) -> Builder {
        Client::builder(&self.linked()).token(self.token())
    }

    /// Connects through the proxy and without the event stream: the tests must not depend on it.
    pub(super) fn client(&self) -> Client {
        self.builder().without_events().build().unwrap()
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Value {
        let request = self.http.post(format!("{}{path}", self.direct())).json(body);
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(super) async fn resource(&self, name: &str) -> Value {
        self.get(&format!("/v1/resources/{name}")).await
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        let request = self.http.get(format!("{}{path}", self.direct()));
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(super) async fn is_free(&self, name: &str) -> bool {
        self.resource(name).await["holder"].is_null()
    }

    pub(super) async fn held_by(&self, name: &str, owner: &str) {
        eventually("it is held", || async {
            self.resource(name).await["holder"]["ownerId"] == owner
        })
        .await;
    }

    /// Fencing rejections, newest first: token, highest token, source, reason.
    pub(super) async fn ledger(&self) -> Vec<(i64, Option<i64>, String, String)> {
        let service = &self.server.as_ref().unwrap().serving.leases;
        let rows = service.rejections(None).await.unwrap();
        rows.into_iter()
            .map(|row| (row.token, row.highest, row.source, row.reason))
            .collect()
    }

    /// As an operator does.
    pub(super) async fn revoke(&self, lease_id: &str) {
        let revocation = Revocation {
            by: "dana".into(),
            reason: "stuck since noon".into(),
            audit_id: "audit-7".into(),
        };
        let service = &self.server.as_ref().unwrap().serving.leases;
        service
            .revoke(LeaseId::parse(lease_id).unwrap(), revocation, Duration::ZERO)
            .await
            .unwrap();
    }

    /// `leasehold run … -- sh -c script`, in a folder of its own.
    pub(super) fn run(&self, flags: &[&str], script: &str) -> Run {
        self.run_command(flags, &["sh", "-c", script])
    }

    pub(super) fn run_command(&self, flags: &[&str], command: &[&str]) -> Run {
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("LEASEHOLD_SERVER", self.linked())
            .env("LEASEHOLD_TOKEN", self.token())
            .current_dir(folder.path())
            .arg("run")
            .args(flags)
            .arg("--")
            .args(command)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Run { child, folder }
    }
}

/// A running `leasehold run` and the files that its command writes to its folder.
pub(super) struct Run {
    pub(super) child: Child,
    folder: tempfile::TempDir,
}

/// Writes the seconds since boot into `beats`, twenty times a second.
pub(super) const BEATS: &str = "while :; do read up rest </proc/uptime; echo $up >>beats; sleep 0.05; done";

impl Run {
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    pub(super) async fn wrote(&self, name: &str) {
        eventually("the command wrote", || async {
            !self.read(name).trim().is_empty()
        })
        .await;
    }

    /// When the command last reported that it ran.
    pub(super) fn last_beat(&self) -> Moment {
        let text = self.read("beats");
        // The last line may be cut.
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        let seconds: f64 = whole.lines().next_back().unwrap().parse().unwrap();
        Moment::from_millis(Duration::from_secs_f64(seconds).as_millis().try_into().unwrap())
    }

    pub(super) async fn beats_after(&self, moment: Moment) {
        eventually("the command runs on", || async { self.last_beat() > moment }).await;
    }

    pub(super) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().unwrap().try_into().unwrap()).unwrap()
    }

    pub(super) fn send(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// The command's first process; its script has written `$$` there.
    pub(super) async fn command(&self) -> Pid {
        self.wrote("pid").await;
        pid_of(self.read("pid").trim())
    }

    pub(super) async fn watcher(&self) -> Pid {
        let parent = self.pid().as_raw_nonzero().get();
        let found = std::cell::Cell::new(None);
        eventually("it has a watcher", || async {
            found.set(children(parent).find(|pid| name(*pid) == "lease-guard"));
            found.get().is_some()
        })
        .await;
        found.get().unwrap()
    }

    /// Whether any other process started by it still runs in its folder.
    pub(super) fn is_running(&self) -> bool {
        let ourselves = self.child.id().map(|id| id.to_string());
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        processes
            .filter(|entry| entry.file_name().to_str() != ourselves.as_deref())
            .filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
            .any(|cwd| cwd.starts_with(self.folder.path()))
    }

    /// Waits until no process of the command runs.
    pub(super) async fn is_over(&self) {
        eventually("nothing of the command runs", || async { !self.is_running() }).await;
    }

    /// The next line of standard error.
    pub(super) async fn stderr_line(&mut self) -> String {
        let stderr = self.child.stderr.as_mut().unwrap();
        let mut line = Vec::new();
        let reading = async {
            while line.last() != Some(&b'\n') {
                line.push(stderr.read_u8().await.unwrap());
            }
        };
        let read = tokio::time::timeout(Duration::from_secs(30), reading).await;
        let line = String::from_utf8(line).unwrap();
        assert!(read.is_ok(), "{line}");
        line
    }

    /// Exit code and the rest of standard error.
    pub(super) async fn ended(&mut self) -> (i32, String) {
        let mut stderr = String::new();
        self.child
            .stderr
            .as_mut()
            .unwrap()
            .read_to_string(&mut stderr)
            .await
            .unwrap();
        let status = self.child.wait().await.unwrap();
        (status.code().unwrap(), stderr)
    }
}

pub(super) fn pid_of(text: &str) -> Pid {
    Pid::from_raw(text.parse().unwrap()).unwrap()
}

fn children(parent: i32) -> impl Iterator<Item = Pid> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let all = std::fs::read_to_string(path).unwrap_or_default();
    let pids: Vec<Pid> = all.split_whitespace().map(pid_of).collect();
    pids.into_iter()
}

fn name(pid: Pid) -> String {
    let path = Path::new("/proc")
        .join(pid.as_raw_nonzero().to_string())
        .join("comm");
    std::fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// The most that may pass from `from` until `until`.
pub(super) fn no_later(until: Moment, from: Moment, most: Duration) {
    let took = until.since(from);
    assert!(took <= most + SLACK, "{took:?} instead of at most {most:?}");
}

pub(super) fn now() -> Moment {
    clock::now()
}

pub(super) use crate::support::aside;
