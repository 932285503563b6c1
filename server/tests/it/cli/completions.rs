//! Shell completions that a real shell loads, and man pages that a real reader renders.

use std::process::Command;

use super::{leasehold, run};

#[test]
fn bash_completes_commands_and_flags() {
    // The real shell with our function loaded: its completions after `leasehold doc` and
    // `leasehold doctor --`.
    let folder = tempfile::tempdir().unwrap();
    let (code, script, _) = run(leasehold(folder.path()).args(["completions", "bash"]));
    assert_eq!(code, 0);
    std::fs::write(folder.path().join("leasehold.bash"), script).unwrap();
    let offered = |words: &str, count: usize| {
        let asks = format!(
            "source ./leasehold.bash; COMP_WORDS=({words}); COMP_CWORD={count}; _leasehold leasehold \"${{COMP_WORDS[{count}]}}\" x; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let output = Command::new("bash")
            .args(["-c", &asks])
            .current_dir(folder.path())
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(offered("leasehold doc", 1), "doctor\n");
    let flags = offered("leasehold doctor --", 2);
    assert!(flags.contains("--json") && flags.contains("--config"), "{flags}");
    for shell in ["zsh", "fish"] {
        let (code, script, _) = run(leasehold(folder.path()).args(["completions", shell]));
        assert!(
            code == 0 && script.contains("doctor") && !script.contains("run-guard"),
            "{shell}"
        );
    }
    let (code, _, err) = run(leasehold(folder.path()).args(["completions", "tcsh"]));
    assert!(code == 2 && err.contains("bash, zsh, fish"), "{err}");
}

#[test]
fn each_command_has_a_man_page_with_examples_and_exit_codes() {
    // Written into a new folder; hidden commands have no page.
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(leasehold(folder.path()).args(["man", "--out", "man/man1"]));
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.lines().count() > 20, "{out}");
    assert!(!out.contains("run-guard") && !out.contains("-help"), "{out}");
    for page in [
        "leasehold",
        "leasehold-doctor",
        "leasehold-locks",
        "leasehold-audit-verify",
    ] {
        let text = std::fs::read_to_string(folder.path().join(format!("man/man1/{page}.1"))).unwrap();
        assert!(
            text.contains("Example") && text.contains("Exit codes"),
            "{page}: {text}"
        );
    }
    let (code, _, err) = run(leasehold(folder.path()).args(["man", "--out", "/proc/nowhere"]));
    assert!(code == 1 && err.contains("cannot make /proc/nowhere"), "{err}");
}
