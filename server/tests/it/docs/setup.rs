//! The set-up of a new machine.

use std::path::Path;
use std::process::Command;

#[test]
fn a_step_with_many_packages_has_its_log() {
    // A list of packages is longer than the name of a file may be.
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let cache = tempfile::tempdir().unwrap();
    let script = r#". scripts/lib/common.sh; quietly "apt-get install $(printf 'package-%s ' {1..60})" echo installed"#;
    let output = Command::new("bash")
        .args(["-euc", script])
        .current_dir(root)
        .env("LEASEHOLD_CACHE", cache.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let logs: Vec<_> = std::fs::read_dir(cache.path().join("log")).unwrap().collect();
    let [Ok(log)] = logs.as_slice() else {
        panic!("{logs:?}")
    };
    assert_eq!(std::fs::read_to_string(log.path()).unwrap(), "installed\n");
}
