//! A folder with a configuration, and the command run in it.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub(super) struct ConfigFolder {
    pub(super) folder: tempfile::TempDir,
}

/// The output.
#[derive(Debug)]
pub(super) struct DoctorReport {
    pub(super) code: i32,
    pub(super) answer: Value,
    pub(super) errors: String,
}

impl ConfigFolder {
    /// With a store in the folder, unless the text names another.
    pub(super) fn new(toml: &str) -> Self {
        let config = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let text = format!("listen = \"127.0.0.1:0\"\n{toml}");
        std::fs::write(config.path().join("leasehold.toml"), text).unwrap();
        config
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    pub(super) fn leasehold(&self) -> Command {
        self.command(env!("CARGO_BIN_EXE_leasehold"))
    }

    pub(super) async fn doctor(&self) -> DoctorReport {
        let mut command = self.leasehold();
        command.args(["doctor", "--json"]);
        report(command).await
    }

    /// Names and sizes of all files, to detect writes.
    pub(super) fn files(&self) -> Vec<(String, u64)> {
        let entries = std::fs::read_dir(self.path()).unwrap();
        let mut files: Vec<_> = entries
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (
                    entry.file_name().to_string_lossy().into_owned(),
                    entry.metadata().unwrap().len(),
                )
            })
            .collect();
        files.sort();
        files
    }
}

/// Runs it with the servers of the test still up.
pub(super) async fn output(mut command: Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

pub(super) async fn report(command: Command) -> DoctorReport {
    let (code, out, errors) = output(command).await;
    let answer = serde_json::from_str(&out).unwrap_or_else(|why| panic!("{why}: {out}\n{errors}"));
    DoctorReport { code, answer, errors }
}

impl DoctorReport {
    /// Findings of this level, as `check: found → remedy`.
    pub(super) fn level(&self, level: &str) -> Vec<String> {
        let findings = self.answer["findings"].as_array().unwrap();
        let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let of_level = findings.iter().filter(|one| one["level"] == level);
        let lines = of_level.map(|one| {
            let (check, found, remedy) = (text(one, "check"), text(one, "found"), text(one, "remedy"));
            format!("{check}: {found} → {remedy}")
        });
        lines.collect()
    }

    /// Exactly one fault, with these words in it; the exit code matches.
    pub(super) fn has_one_fault(&self, words: &[&str]) {
        let faults = self.level("fault");
        assert_eq!((self.code, faults.len()), (1, 1), "{self:#?}");
        for word in words {
            assert!(faults[0].contains(word), "{word}: {faults:?}");
        }
    }
}
