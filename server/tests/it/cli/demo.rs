//! The output of `leasehold demo`: the sign-in link last, the log in a file, and a command for another link that works.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use super::leasehold;
use crate::support::form::Form as _;

use rustix::process::{Pid, Signal, kill_process};

use testkit::eventually;
use testkit::leftovers::entries_of;

struct RunningDemo {
    child: Child,
    output: BufReader<ChildStdout>,
    /// Read from the start: a process that fills its pipe waits.
    errors: JoinHandle<String>,
    /// Lines up to the link.
    lines: Vec<String>,
}

impl RunningDemo {
    /// Returns once it has printed the link.
    fn start(folder: &Path, flags: &[&str]) -> Self {
        // Servers run under another account, which must reach their folders.
        let mut command = leasehold(folder);
        for name in ["PATH", "HOME", "XDG_CACHE_HOME", "LEASEHOLD_CACHE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let mut child = command
            .args(["demo", "--listen", "127.0.0.1:0"])
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let errors = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
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

    /// As by Ctrl-C. Returns what was printed after the link, and all of standard error.
    fn stop(mut self) -> (String, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        (rest, self.errors.join().unwrap())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_ends_with_its_link_and_logs_to_a_file() {
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let demo = RunningDemo::start(folder.path(), &[]);
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
fn a_verbose_demo_logs_to_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let demo = RunningDemo::start(folder.path(), &["--verbose"]);
    assert_eq!(demo.line("Log: "), None);
    assert!(demo.link().contains("/sign-in?link=lhl_"), "{:?}", demo.lines);
    let (after, errors) = demo.stop();
    assert_eq!(after, "");
    assert!(errors.contains(" INFO "), "{errors}");
}
