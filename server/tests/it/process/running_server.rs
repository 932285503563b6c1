//! The real binary with a configuration file that can be changed, and streams that are read to their end.

use crate::support::aside;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ::testkit::free_port;
use domain::access::{Grant, Role};
use leasehold::audit::{Audit, ChainCheckpoints};
use leasehold::identity::{Identity, NewToken, Principal};
use reqwest::Client;
use runtime::clock::Clock;
use runtime::db::Db;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::support::caller;
use testkit::eventually;

pub(crate) struct Running {
    pub(super) folder: tempfile::TempDir,
    pub(crate) http: Client,
    child: Child,
    port: u16,
    store: String,
    token: String,
}

impl Running {
    /// Serves this `leasehold.toml` on SQLite, until it is ready.
    pub(crate) async fn start(toml: &str) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let store = format!("sqlite:{}", folder.path().join("leasehold.db").display());
        let token = make_token(&store).await;
        Self::spawned(folder, "sqlite:leasehold.db".to_owned(), token, toml).await
    }

    /// The same on the store at this address.
    pub(crate) async fn on(store: String, toml: &str) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let token = make_token(&store).await;
        Self::spawned(tempfile::tempdir().unwrap(), store, token, toml).await
    }

    /// One more server on the same store, and with the same token.
    pub(crate) async fn another(&self) -> Self {
        self.another_with("").await
    }

    pub(super) async fn another_with(&self, toml: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self::spawned(folder, self.store.clone(), self.token.clone(), toml).await
    }

    async fn spawned(folder: tempfile::TempDir, store: String, token: String, toml: &str) -> Self {
        std::fs::write(folder.path().join("leasehold.toml"), toml).unwrap();
        let port = free_port().unwrap();
        let mut running = Self {
            http: caller::client(&token, Duration::from_secs(60)),
            child: spawn(&folder, &store, port),
            folder,
            port,
            store,
            token,
        };
        running.ready().await;
        running
    }

    pub(super) fn store(&self) -> &str {
        &self.store
    }

    /// On the same store again, after it has ended.
    pub(super) async fn again(&mut self) {
        self.child = spawn(&self.folder, &self.store, self.port);
        self.ready().await;
    }

    async fn ready(&mut self) {
        let (url, http) = (self.url("/readyz"), self.http.clone());
        let log = self.folder.path().join("log");
        eventually("the server is ready", async || {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {:?}", std::fs::read_to_string(&log));
            http.get(&url)
                .send()
                .await
                .is_ok_and(|answer| answer.status() == 200)
        })
        .await;
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn configure(&self, toml: &str) {
        std::fs::write(self.folder.path().join("leasehold.toml"), toml).unwrap();
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub(crate) async fn logs(&self, words: &str) {
        eventually(&format!("the log says {words:?}"), async || {
            self.log().contains(words)
        })
        .await;
    }

    pub(crate) async fn json(&self, path: &str) -> Value {
        let answer = self.http.get(self.url(path)).send().await.unwrap();
        answer.json().await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let answer = self.http.post(self.url(path)).json(body).send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    /// An event stream, read in the background.
    pub(crate) async fn stream(&self, path: &str) -> Stream {
        // Without a limit: it lasts.
        let client = Client::new();
        let request = client.get(self.url(path)).bearer_auth(&self.token);
        let mut answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let text = Arc::new(Mutex::new(String::new()));
        let heard = text.clone();
        let task = aside(async move {
            while let Some(part) = answer.chunk().await? {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&part));
            }
            Ok(())
        });
        Stream { text, task }
    }

    pub(super) async fn exit(&mut self) -> ExitStatus {
        self.child.wait().await.unwrap()
    }
}

/// The stream's text so far.
pub(crate) struct Stream {
    text: Arc<Mutex<String>>,
    task: JoinHandle<reqwest::Result<()>>,
}

impl Stream {
    pub(super) fn has(&self, words: &str) -> bool {
        self.text.lock().unwrap().contains(words)
    }

    pub(super) fn is_open(&self) -> bool {
        !self.task.is_finished()
    }

    /// To its last byte, without an error.
    pub(super) async fn ended(self) {
        self.task.await.unwrap().unwrap();
    }
}

fn spawn(folder: &tempfile::TempDir, store: &str, port: u16) -> Child {
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.path().join("log"))
        .unwrap();
    // A full disk: no server depends on its standard output.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command
        .env_clear()
        .env("LEASEHOLD_STORE", store)
        .current_dir(folder.path())
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(log)
        .kill_on_drop(true);
    command.spawn().unwrap()
}

/// With every permission: permissions are not tested here.
pub(crate) async fn make_token(store: &str) -> String {
    let db = Db::open(store).await.unwrap();
    let audit = Audit::new(db.clone(), Clock::start(), ChainCheckpoints::default());
    let identity = Identity::open(db.clone(), audit, Clock::start()).await.unwrap();
    let new = NewToken {
        name: "test".to_owned(),
        grants: [Role::Admin, Role::Operator, Role::Client, Role::Auditor]
            .map(Grant::everywhere)
            .to_vec(),
        expires_in: None,
    };
    let token = identity
        .create_token(&Principal::system("test"), new)
        .await
        .unwrap();
    db.close().await;
    token.expose().to_owned()
}
