//! `leasehold serve` as a process of its own: telemetry is the process's, and so are its variables.

use crate::support::client;
use std::process::Stdio;
use std::time::Duration;

use ::testkit::free_port;
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use testkit::eventually;

pub(super) struct ServerProcess {
    pub(super) child: Child,
    pub(super) token: String,
    pub(super) client: reqwest::Client,
    pub(super) port: u16,
    folder: tempfile::TempDir,
}

impl ServerProcess {
    pub(super) async fn start(variables: &[(&str, &str)]) -> Self {
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let port = free_port().unwrap();
        let run = |args: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
            command
                .env_clear()
                .env("LEASEHOLD_STORE", "sqlite:leasehold.db")
                .env("LEASEHOLD_LISTEN", format!("127.0.0.1:{port}"))
                .envs(variables.iter().copied())
                .current_dir(folder.path())
                .args(args)
                .stdin(Stdio::null())
                .kill_on_drop(true);
            command
        };
        let made = run(&["token", "create", "--name", "test", "--role", "admin"])
            .output()
            .await
            .unwrap();
        let errors = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "{errors}");
        let token = String::from_utf8(made.stdout).unwrap().trim().to_owned();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let child = run(&["serve"]).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut server = Self {
            child,
            client: client(&token, Duration::from_secs(30)),
            token,
            port,
            folder,
        };
        eventually("the server is ready", async || {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", server.log());
            let answer = reqwest::get(format!("http://127.0.0.1:{port}/readyz")).await;
            answer.is_ok_and(|answer| answer.status().is_success())
        })
        .await;
        server
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) async fn text(&self, path: &str) -> String {
        let answer = self.client.get(self.url(path)).send().await.unwrap();
        answer.text().await.unwrap()
    }

    pub(super) async fn json(&self, path: &str) -> Value {
        serde_json::from_str(&self.text(path).await).unwrap()
    }

    /// With a `traceparent`, where one is given.
    pub(super) async fn post(&self, path: &str, body: &Value, trace: Option<&str>) -> (u16, Value) {
        let mut request = self.client.post(self.url(path)).json(body);
        if let Some(trace) = trace {
            request = request.header("traceparent", trace);
        }
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap())
    }

    pub(super) async fn acquire(&self, resource: &str, trace: Option<&str>) -> Value {
        let body = json!({"resource": resource, "ownerId": "worker-1", "ttlSeconds": 60});
        let (status, answer) = self.post("/v1/locks/acquire", &body, trace).await;
        assert_eq!((status, &answer["acquired"]), (200, &json!(true)), "{answer}");
        answer
    }

    pub(super) async fn release(&self, lease: &Value, trace: Option<&str>) {
        let path = format!("/v1/locks/{}", lease["leaseId"].as_str().unwrap());
        let mut request = self.client.delete(self.url(&path));
        if let Some(trace) = trace {
            request = request.header("traceparent", trace);
        }
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
    }

    /// As by Ctrl-C; until it has ended.
    pub(super) async fn stop(&mut self) -> Option<i32> {
        let id = self.child.id().unwrap().try_into().unwrap();
        let process = rustix::process::Pid::from_raw(id).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        self.child.wait().await.unwrap().code()
    }
}
