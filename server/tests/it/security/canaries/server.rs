//! The real binary for the canary test: its commands, and a server whose log is captured.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn leasehold(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.current_dir(folder).env_clear();
    command
}

/// What a command of the product prints, on both outputs.
pub(crate) fn output(folder: &Path, args: &[&str], input: &str) -> String {
    let mut command = leasehold(folder);
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

pub(crate) struct Server {
    child: Child,
    pub(crate) home: String,
    log: Option<std::thread::JoinHandle<String>>,
}

impl Drop for Server {
    /// A test that fails leaves none behind.
    fn drop(&mut self) {
        // Usually it has ended.
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}

pub(crate) fn serve(folder: &Path) -> Server {
    let mut child = leasehold(folder)
        .arg("serve")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = child.stderr.take().unwrap();
    let log = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        errors.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let home = first.strip_prefix("Leasehold: ").expect(&first).to_owned();
    Server {
        child,
        home,
        log: Some(log),
    }
}

impl Server {
    /// Stops it, and returns what it logged.
    pub(crate) fn stop(mut self) -> String {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(&id).status().unwrap().success());
        self.child.wait().unwrap();
        self.log.take().unwrap().join().unwrap()
    }
}

/// The line with the setup link that a first start prints, and nothing else does.
pub(crate) fn serve_setup(folder: &Path) -> String {
    let mut child = leasehold(folder)
        .arg("serve")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = lines
        .map(Result::unwrap)
        .find(|line| line.contains("/setup#"))
        .unwrap();
    let id = child.id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    child.wait().unwrap();
    line
}
