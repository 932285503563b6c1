//! Prometheus' own check of metrics.

use std::io::Write as _;
use std::process::{Command, Stdio};

use ::testkit::promtool;

/// Output of `promtool check metrics`; empty without findings.
pub(crate) fn check_metrics(metrics: &str) -> String {
    let mut check = Command::new(promtool().unwrap())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    check.stdin.take().unwrap().write_all(metrics.as_bytes()).unwrap();
    let output = check.wait_with_output().unwrap();
    let words = [output.stdout, output.stderr]
        .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
        .concat();
    assert!(output.status.success(), "{words}");
    words
}
