//! The output of `leasehold demo`: the sign-in link last, the log in a file, and a command for another link that works.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use super::leasehold;
use crate::support::form::Form as _;

use rustix::process::{Pid, Signal, kill_process};

use testkit::eventually;
use testkit::leftovers::entries_of;

struct RunningDemo {
    child: Child,
    output: BufReader<ChildStdout>,
    errors: ChildStderr,
    /// Lines up to the link.
    lines: Vec<String>,
}

impl RunningDemo {
    /// Returns once it has printed the link.
    fn start(folder: &Path) -> Self {
        let mut child = spawn(folder, &[]);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let errors = child.stderr.take().unwrap();
        let mut lines = Vec::new();
        for line in output.by_ref().lines().map(Result::unwrap) {
            let is_link = line.starts_with("http://");
            lines.push(line);
            if is_link {
                break;
            }
        }
        Self {
            child,
            output,
            errors,
            lines,
        }
    }

    fn link(&self) -> &str {
        self.lines.last().map_or("", String::as_str)
    }

    /// The rest of a line that begins like this.
    fn line(&self, start: &str) -> Option<&str> {
        self.lines.iter().find_map(|line| line.strip_prefix(start))
    }

    /// Returns what was printed after the link, and all of standard error.
    fn stop(mut self) -> (String, String) {
        interrupt(&self.child);
        let (mut rest, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        assert!(self.child.wait().unwrap().success());
        (rest, errors)
    }
}

fn spawn(folder: &Path, flags: &[&str]) -> Child {
    let mut command = leasehold(folder);
    // Servers run under another account, which must reach their folders.
    for name in ["PATH", "HOME", "XDG_CACHE_HOME", "LEASEHOLD_CACHE"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .args(["demo", "--listen", "127.0.0.1:0"])
        .args(flags)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// As by Ctrl-C.
fn interrupt(child: &Child) {
    kill_process(Pid::from_child(child), Signal::INT).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_ends_with_its_link_and_logs_to_a_file() {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let demo = RunningDemo::start(folder.path());
    let http = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let (home, secret) = demo.link().split_once("/sign-in?link=").unwrap();
    let sign_in = async |secret: &str| {
        let form = [("link", secret)];
        let request = http.post(format!("{home}/sign-in")).form(&form);
        let answer = request.header("origin", home).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    // The notifications of the first minute are in the file.
    let log = demo.line("Log: ").unwrap().to_owned();
    eventually("the log has lines", async || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("the demo's webhook received"))
    })
    .await;
    assert_eq!(sign_in(secret).await.0, 303);

    // The command line works as it is printed, on the page too.
    let command = demo.line("Another link: ").unwrap();
    let (status, page) = sign_in(secret).await;
    assert!(status == 410 && page.contains(command), "{page}");
    let again = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(again.status.success(), "{again:?}");
    let again = String::from_utf8(again.stdout).unwrap();
    let again = again.trim_end().strip_prefix(&format!("{home}/sign-in?link="));
    assert_eq!(sign_in(again.unwrap()).await.0, 303);

    let (after, errors) = demo.stop();
    assert_eq!(after, "");
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(
        lines,
        [
            "leasehold: starting Postgres, Redis, etcd, ZooKeeper and Consul, each in a folder of its own",
            "leasehold: simulating the history of the last 24 hours",
            "leasehold: stopping the servers",
        ]
    );
    assert!(!Path::new(&log).exists(), "{log} is left behind");
    assert!(entries_of(folder.path()).is_empty());
}

#[test]
fn a_verbose_demo_logs_to_the_terminal_and_stops_early() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = spawn(folder.path(), &["--verbose"]);
    let mut errors = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let before: Vec<String> = errors
        .by_ref()
        .take_while(|line| !line.contains("simulating the history"))
        .collect();
    assert!(before.iter().any(|line| line.contains(" INFO ")), "{before:?}");
    // Its day is not simulated to the end first.
    interrupt(&child);
    let after: Vec<String> = errors.collect();
    assert!(
        after.iter().any(|line| line.contains("stopping the servers")),
        "{after:?}"
    );
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    assert!(entries_of(folder.path()).is_empty());
}
