//! The files of docs/deploy: read by the programs they are for where those can read without a system, else line by line.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/deploy")
}

fn text(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

#[test]
fn the_systemd_unit_is_valid_and_hardened() {
    // With the built binary: findings concern only the machine; then the exposure score, out of 10.
    let unit = text("leasehold.service").replace("/usr/local/bin/leasehold", env!("CARGO_BIN_EXE_leasehold"));
    for line in [
        "DynamicUser=yes",
        "ProtectSystem=strict",
        "NoNewPrivileges=yes",
        "StateDirectory=leasehold",
        "#LoadCredential=",
        "TimeoutStopSec=15s",
        "LimitCORE=0",
    ] {
        assert!(unit.lines().any(|own| own.starts_with(line)), "{line}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("leasehold.service");
    std::fs::write(&path, unit.replace("Documentation=man:leasehold(1)\n", "")).unwrap();
    let analyze = |args: &[&str]| {
        let output = Command::new("systemd-analyze").args(args).arg(&path).output();
        let Ok(output) = output else {
            // A machine without systemd: only the checks above are possible.
            return None;
        };
        let report = [output.stdout, output.stderr].concat();
        Some((
            output.status.success(),
            String::from_utf8_lossy(&report).into_owned(),
        ))
    };
    if let Some((ok, report)) = analyze(&["verify", "--man=no"]) {
        let ours: Vec<&str> = report
            .lines()
            .filter(|line| line.contains("leasehold.service"))
            .collect();
        assert!(ok && ours.is_empty(), "{report}");
    }
    if let Some((true, report)) = analyze(&["security", "--offline=true"]) {
        let level = report
            .split("Overall exposure level for leasehold.service: ")
            .nth(1)
            .unwrap();
        let level: f32 = level.split(' ').next().unwrap().parse().unwrap();
        assert!(level < 2.0, "{level}");
    }
}

#[test]
fn commands_next_to_the_unit_have_its_user_and_folders() {
    // Without a folder of the unit, its files cannot be read; a failed command that is not collected keeps its name.
    let (unit, page) = (text("leasehold.service"), text("README.md").replace("\\\n", " "));
    let commands: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("systemd-run "))
        .collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    let keys = [
        "DynamicUser=",
        "StateDirectory",
        "LogsDirectory",
        "WorkingDirectory=",
    ];
    let of_unit: Vec<&str> = unit
        .lines()
        .filter(|line| keys.iter().any(|key| line.starts_with(key)))
        .collect();
    assert_eq!(of_unit.len(), 5, "{of_unit:?}");
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        assert!(words.contains(&"--collect"), "{command}");
        for setting in of_unit.iter().chain(&["User=leasehold"]) {
            assert!(words.contains(setting), "{setting}: {command}");
        }
    }
}

/// The instructions of the file, continued lines joined.
fn instructions(text: &str) -> Vec<(String, String)> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parts = lines.map(|line| line.split_once(' ').unwrap_or((line, "")));
    parts
        .map(|(word, rest)| (word.to_owned(), rest.trim().to_owned()))
        .collect()
}

#[test]
fn the_image_contains_one_binary_and_runs_without_root() {
    // Known instructions alone, each base with its version, a user, a health check, the binary's own arguments.
    let file = instructions(&text("Dockerfile"));
    let known = [
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "USER",
        "VOLUME",
        "ENV",
        "EXPOSE",
        "STOPSIGNAL",
        "HEALTHCHECK",
        "ENTRYPOINT",
        "CMD",
    ];
    for (word, rest) in &file {
        assert!(known.contains(&word.as_str()), "{word} {rest}");
    }
    let of = |word: &str| -> Vec<&str> {
        let found = file.iter().filter(|(own, _)| own == word);
        found.map(|(_, rest)| rest.as_str()).collect()
    };
    let bases = of("FROM");
    assert_eq!(bases.len(), 2);
    assert!(
        bases
            .iter()
            .all(|base| base.contains(':') && !base.contains("latest")),
        "{bases:?}"
    );
    assert!(of("COPY").iter().any(|copy| copy.starts_with("--from=build ")));
    let user = of("USER")[0].split(':').next().unwrap().parse::<u32>().unwrap();
    assert!(user > 0);
    // By plain HTTP, and by the HTTPS of `[tls]`.
    for url in ["http://127.0.0.1:3000/healthz", "https://127.0.0.1:3000/healthz"] {
        assert!(of("HEALTHCHECK")[0].contains(url), "{url}");
    }
    // Docker kills after 10 s, before a slow shutdown has ended.
    assert!(text("README.md").contains(" --stop-timeout 15 "));
    let command: Vec<String> = serde_json::from_str(of("CMD")[0]).unwrap();
    assert_eq!(command[..2], ["serve", "--config"]);
    let entry: Vec<String> = serde_json::from_str(of("ENTRYPOINT")[0]).unwrap();
    assert_eq!(entry, ["/usr/local/bin/leasehold"]);
    // The compiler of the image is not older than the workspace's `rust-version`.
    let wanted = include_str!("../../../../Cargo.toml");
    let wanted = wanted
        .split("rust-version = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(
        bases[0].starts_with(&format!("rust:{wanted}-")),
        "{} {wanted}",
        bases[0]
    );
}
