//! A lock library of another language, in a process of its own: the scripts of `server/tests/clients`.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
/// Time limit for an interpreter on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends with this value.
pub(crate) struct LockClient {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl LockClient {
    /// Runs a script of the folder: `.mjs` by Node, `.py` by Python, `.php` by PHP with Debian's packages, `.sh` with
    /// what npm packages contain for other interpreters.
    pub(crate) fn start(script: &str, args: &[&str]) -> Self {
        let (interpreter, folder, installed) = match Path::new(script).extension().and_then(OsStr::to_str) {
            Some("py") => ("python3", "python", "site"),
            Some("php") => ("php", "php", ""),
            Some("sh") => ("bash", "node", "node_modules"),
            _ => ("node", "node", "node_modules"),
        };
        let folder = Path::new(FOLDER).join(folder);
        let installed = folder.join(installed);
        assert!(installed.exists(), "install the clients with: scripts/setup test");
        let mut process = Command::new(interpreter)
            .current_dir(&folder)
            .env("PYTHONPATH", installed)
            .arg(script)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{interpreter}: {error}; install it with: scripts/setup test"));
        Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()).lines(),
            _process: process,
        }
    }

    pub(crate) async fn line(&mut self) -> String {
        let next = tokio::time::timeout(PATIENCE, self.output.next_line());
        next.await.expect("a line of the client").unwrap().unwrap()
    }

    /// The next line with this beginning; returns what follows it.
    pub(crate) async fn until(&mut self, beginning: &str) -> String {
        loop {
            if let Some(rest) = self.line().await.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }

    /// Until it has ended; its last lines are skipped.
    pub(crate) async fn ended(&mut self) {
        let last = async { while self.output.next_line().await.unwrap().is_some() {} };
        tokio::time::timeout(PATIENCE, last)
            .await
            .expect("the client ends");
    }

    pub(crate) async fn send(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }
}
