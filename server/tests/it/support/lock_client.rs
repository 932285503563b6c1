//! A lock library of another language, in a process of its own: the scripts of `server/tests/clients`.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
/// An interpreter of a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends with this value.
pub(crate) struct LockClient {
    _process: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl LockClient {
    /// Runs a script of the folder: `.mjs` by Node, `.py` by Python.
    pub(crate) fn start(script: &str, args: &[&str]) -> Self {
        let (interpreter, folder, installed) = match script.ends_with(".py") {
            true => ("python3", "python", "site"),
            false => ("node", "node", "node_modules"),
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
            .expect("the interpreter is installed");
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

    pub(crate) async fn send(&mut self, line: &str) {
        self.input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }
}
