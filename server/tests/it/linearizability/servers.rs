//! Servers of a run: the built binary, each a process with a port and a log of its own.

use crate::support::client;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use ::testkit::free_port;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use tokio::process::{Child, Command};

use testkit::eventually;

/// The isolation between the server and the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ServerWrapper {
    Nothing,
    /// A wall clock offset, read from this file.
    Faketime(PathBuf),
    /// Its folder is a small disk in a private mount namespace.
    SmallDisk {
        mib: u32,
    },
}

/// How a missing program is fixed.
const FAKETIME: &str = "faketime is not installed; install it with: apt-get install -y faketime";
const UNSHARE: &str = "a small disk needs mount namespaces: run as root, or allow unprivileged ones with: \
     sysctl -w kernel.unprivileged_userns_clone=1";

pub(super) struct Server {
    pub(super) port: u16,
    store: String,
    folder: PathBuf,
    log: PathBuf,
    around: ServerWrapper,
    settings: &'static [(&'static str, &'static str)],
    child: Option<Child>,
}

/// In the folder: a token that may hold every lease of its store.
const TOKEN: &str = "token";
/// In the folder: `lease.store`, if the leases have a store of their own.
pub(super) const LEASE_STORE: &str = "lease-store";

impl Server {
    /// Started, and answering.
    pub(super) async fn start(
        store: &str,
        folder: &Path,
        around: ServerWrapper,
        settings: &'static [(&'static str, &'static str)],
    ) -> Self {
        let port = free_port().unwrap();
        let mut server = Self {
            port,
            store: store.to_owned(),
            folder: folder.to_owned(),
            log: folder.join(format!("server-{port}.log")),
            around,
            settings,
            child: None,
        };
        let is_reachable = !matches!(server.around, ServerWrapper::SmallDisk { .. });
        if is_reachable && !folder.join(TOKEN).exists() {
            server.create_token().await;
        }
        server.restart().await;
        server
    }

    /// Each server of a store has its own.
    fn create_token_args(&self) -> [String; 6] {
        let name = format!("test-{}", self.port);
        ["token", "create", "--role", "client", "--name", &name].map(str::to_owned)
    }

    /// Before the server begins, as an operator may do.
    async fn create_token(&self) {
        let created = clean(env!("CARGO_BIN_EXE_leasehold"))
            .args(self.create_token_args())
            .current_dir(&self.folder)
            .env("LEASEHOLD_STORE", &self.store)
            .output()
            .await
            .unwrap();
        assert!(created.status.success(), "{created:?}");
        std::fs::write(self.folder.join(TOKEN), created.stdout).unwrap();
    }

    /// The token for clients of this server.
    pub(super) fn token(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join(TOKEN)).unwrap();
        text.trim_end().to_owned()
    }

    /// Sends the token.
    pub(super) fn http(&self) -> reqwest::Client {
        client(&self.token(), Duration::from_secs(30))
    }

    /// On the same port.
    pub(super) async fn restart(&mut self) {
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .unwrap();
        let mut command = self.command();
        command
            .current_dir(&self.folder)
            .env("LEASEHOLD_STORE", &self.store)
            .env("LEASEHOLD_LISTEN", format!("127.0.0.1:{}", self.port))
            .env("LEASEHOLD_LOG", "info")
            .envs(self.settings.iter().copied())
            .envs(
                std::fs::read_to_string(self.folder.join(LEASE_STORE))
                    .map(|url| ("LEASEHOLD_LEASE__STORE", url)),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true);
        self.child = Some(command.spawn().unwrap());
        let url = self.url("/healthz");
        eventually("the server answers", async || {
            let status = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(status.is_none(), "{status:?}: {}", self.read_log());
            reqwest::get(&url).await.is_ok()
        })
        .await;
    }

    fn command(&self) -> Command {
        let binary = env!("CARGO_BIN_EXE_leasehold");
        let mut command = match &self.around {
            ServerWrapper::Nothing => clean(binary),
            ServerWrapper::Faketime(file) => {
                let library = faketime_library();
                let mut command = clean(binary);
                command.env("LD_PRELOAD", library);
                command
                    .env("FAKETIME_TIMESTAMP_FILE", file)
                    .env("FAKETIME_NO_CACHE", "1");
                // The wall clock's jump; the monotonic clock is unchanged.
                command
                    .env("DONT_FAKE_MONOTONIC", "1")
                    .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
                command
            }
            ServerWrapper::SmallDisk { mib } => {
                let mut command = clean("unshare");
                if !rustix::process::geteuid().is_root() {
                    command.args(["--user", "--map-root-user"]);
                }
                // Only processes in the same namespace see the store.
                let script = format!(
                    "mount -t tmpfs -o size={mib}m none disk && \"$0\" {} >{TOKEN} && exec \"$0\" serve",
                    self.create_token_args().join(" ")
                );
                std::fs::create_dir_all(self.folder.join("disk")).unwrap();
                command.args(["--mount", "sh", "-c", &script, binary]);
                return command;
            }
        };
        command.arg("serve");
        command
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(super) fn read_log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_else(|error| format!("{error}; {UNSHARE}"))
    }

    pub(super) fn pid(&self) -> Pid {
        let id = self.child.as_ref().and_then(Child::id).expect("it runs");
        Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
    }

    /// A path as the server sees it: on its small disk.
    pub(super) fn seen_by_it(&self, path: &str) -> PathBuf {
        let folder = self.folder.canonicalize().unwrap();
        let inside = folder.strip_prefix("/").unwrap().join(path);
        Path::new("/proc")
            .join(self.pid().as_raw_nonzero().to_string())
            .join("root")
            .join(inside)
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).unwrap();
    }

    /// Returns how it ended.
    pub(super) async fn end(&mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.sweep();
        let mut child = self.child.take().unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(15), child.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("not within 15 s of {signal:?}: {}", self.read_log()))
            .unwrap()
    }

    /// A library that fakes time uses shared memory, and removes it only where a process ends by itself.
    fn sweep(&self) {
        let pid = self.child.as_ref().and_then(Child::id);
        if let (ServerWrapper::Faketime(_), Some(pid)) = (&self.around, pid) {
            for name in ["faketime_shm", "sem.faketime_sem"] {
                let _ = std::fs::remove_file(format!("/dev/shm/{name}_{pid}"));
            }
        }
    }

    /// No more files than are open now; or again as many as before.
    pub(super) fn limit_files(&self, limited: bool) {
        let old = current(&self.pid());
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.pid().as_raw_nonzero()))
            .unwrap()
            .count();
        let current = if limited { Some(open as u64) } else { old.maximum };
        let limit = Rlimit {
            current,
            maximum: old.maximum,
        };
        prlimit(Some(self.pid()), Resource::Nofile, limit).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.sweep();
    }
}

/// Without the environment of the test runner.
fn clean(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// The current limit.
fn current(pid: &Pid) -> Rlimit {
    let text = std::fs::read_to_string(format!("/proc/{}/limits", pid.as_raw_nonzero())).unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))
        .unwrap();
    let mut numbers = line.split_whitespace().map(|word| word.parse().ok());
    Rlimit {
        current: numbers.next().unwrap(),
        maximum: numbers.next().unwrap(),
    }
}

fn faketime_library() -> PathBuf {
    let folders = [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib",
        "/usr/lib64",
    ];
    let found = folders
        .iter()
        .map(|folder| Path::new(folder).join("faketime/libfaketimeMT.so.1"))
        .find(|library| library.exists());
    found.expect(FAKETIME)
}
