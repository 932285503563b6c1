//! The archive of a release, made by scripts/dist from the binary under test.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

/// Its checksum, as the script prints it.
fn made(target: &Path) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/dist");
    let output = Command::new(script)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_release_archive_is_complete_and_reproducible() {
    // Built twice, with a short program in place of the binary that calls the real one; then unpacked and compared.
    let target = tempfile::tempdir().unwrap();
    let release = target.path().join("release");
    std::fs::create_dir(&release).unwrap();
    let stub = release.join("leasehold");
    std::fs::write(
        &stub,
        format!("#!/bin/sh\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_leasehold")),
    )
    .unwrap();
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    let first = made(target.path());
    let second = made(target.path());
    assert_eq!(first, second);
    let archive = first.split_whitespace().nth(1).unwrap();
    let dist = target.path().join("dist");
    let run = |program: &str, args: &[&str], folder: &Path| {
        let output = Command::new(program)
            .args(args)
            .current_dir(folder)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{program}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    run("sha256sum", &["-c", &format!("{archive}.sha256")], &dist);
    run("tar", &["-xzf", archive], &dist);
    let unpacked = dist.join(archive.trim_end_matches(".tar.gz"));
    run("sha256sum", &["-c", "--quiet", "SHA256SUMS"], &unpacked);
    for file in [
        "leasehold",
        "README.md",
        "man/man1/leasehold.1",
        "man/man1/leasehold-doctor.1",
        "man/man1/leasehold-token-create.1",
        "completions/leasehold.bash",
        "completions/_leasehold",
        "completions/leasehold.fish",
        "docs/operations.md",
        "docs/deploy/leasehold.service",
        "docs/leasehold.example.toml",
    ] {
        assert!(unpacked.join(file).is_file(), "{file}");
    }
    assert!(!unpacked.join("man/man1/leasehold-run-guard.1").exists());
    run("bash", &["-n", "completions/leasehold.bash"], &unpacked);
}
