//! Invalid arguments exit 2 and print the valid ones on standard error.

use super::{leasehold, run};

#[test]
fn invalid_arguments_exit_2_with_the_valid_ones() {
    // An unknown command, flag, state, order, number and address; each error names valid
    // values.
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["lock"], "locks"),
        (&["locks", "--prefx", "a"], "--prefix"),
        (&["locks", "--state", "no_tll"], "no_ttl"),
        (
            &["locks", "--sort", "-hold"],
            "resource, held, remaining, waiters, state",
        ),
        (&["locks", "--limit", "0"], "1.."),
        (&["locks", "--server", "localhost:3000"], "http://"),
        (&["locks", "--server", "somewhere"], "http://127.0.0.1:3000"),
        (&[], "Usage: leasehold"),
    ];
    for (args, expected) in cases {
        let (code, out, err) = run(leasehold(folder.path()).args(args));
        assert_eq!((code, out.as_str()), (2, ""), "{args:?}");
        assert!(err.contains(expected), "{args:?}: {err}\nlacks {expected:?}");
    }
}

#[test]
fn credentials_in_the_server_address_are_rejected() {
    // They would be sent instead of the token; the message does not repeat them. By a listing and by a lease client.
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&[&str], &str); 2] = [
        (&["locks"], "--server"),
        (
            &["run", "--resource", "r", "--ttl", "10s", "--", "true"],
            "`server`",
        ),
    ];
    for (args, field) in cases {
        let (code, _, err) = run(leasehold(folder.path())
            .args(args)
            .env("LEASEHOLD_SERVER", "http://ada:hunter2@127.0.0.1:1")
            .env("LEASEHOLD_TOKEN", "lht_x"));
        assert_eq!(code, 2, "{args:?}: {err}");
        assert!(err.contains(field) && !err.contains("hunter2"), "{args:?}: {err}");
    }
}

#[test]
fn help_goes_to_standard_output_and_ends_with_0() {
    // The whole command, and one command with its example.
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(leasehold(folder.path()).arg("--help"));
    assert_eq!((code, err.as_str()), (0, ""));
    for command in ["serve", "demo", "locks", "check-config"] {
        assert!(out.contains(&format!("\n  {command} ")), "{out}");
    }
    let (code, out, _) = run(leasehold(folder.path()).args(["locks", "--help"]));
    assert_eq!(code, 0);
    assert!(out.contains("Examples:\n  leasehold locks "), "{out}");
}

#[test]
fn a_token_from_the_environment_is_not_shown_in_the_help() {
    // By default clap prints the values of variables in help texts.
    let folder = tempfile::tempdir().unwrap();
    let (_, out, _) = run(leasehold(folder.path())
        .args(["locks", "--help"])
        .env("LEASEHOLD_TOKEN", "c4nary"));
    assert!(
        out.contains("LEASEHOLD_TOKEN") && !out.contains("c4nary"),
        "{out}"
    );
}

#[test]
fn an_empty_variable_counts_as_unset() {
    // The configuration file of a command, and of a command below another; the server, whose default is used.
    let folder = tempfile::tempdir().unwrap();
    for args in [&["check-config"][..], &["token", "list"], &["locks"]] {
        let (code, _, err) = run(leasehold(folder.path())
            .args(args)
            .env("LEASEHOLD_CONFIG", "")
            .env("LEASEHOLD_SERVER", ""));
        assert_ne!(code, 2, "{args:?}: {err}");
    }
}

#[test]
fn accounts_of_a_missing_store_are_not_listed_as_empty() {
    // In another folder than the server's. A first token may be created there, with a message about the new store.
    let folder = tempfile::tempdir().unwrap();
    for kind in ["user", "token"] {
        let (code, out, err) = run(leasehold(folder.path()).args([kind, "list"]));
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains("leasehold.console.db does not exist"), "{err}");
    }
    let create = |name: &str| {
        let mut command = leasehold(folder.path());
        run(command.args(["token", "create", "--name", name, "--role", "viewer"]))
    };
    let (code, _, err) = create("first");
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("a new store was created: "), "{err}");
    let (code, _, err) = create("second");
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn a_useless_lifetime_of_a_token_is_refused() {
    // Over before the first request, and so long that the end has no date; nothing is created.
    let folder = tempfile::tempdir().unwrap();
    let create = |lifetime: &str| {
        let mut command = leasehold(folder.path());
        let args = [
            "token",
            "create",
            "--name",
            "ci",
            "--role",
            "viewer",
            "--expires",
            lifetime,
        ];
        run(command.args(args))
    };
    for lifetime in ["0s", "1ms", "11years", "soon"] {
        let (code, out, err) = create(lifetime);
        assert_eq!((code, out.as_str()), (2, ""), "{lifetime}: {err}");
        assert!(err.contains("--expires"), "{err}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let (code, _, err) = create("10years");
    assert_eq!(code, 0, "{err}");
}

#[test]
fn serve_refuses_a_wrong_configuration_with_2_before_it_listens() {
    // The flag is judged like the file, with the same reasons.
    let folder = tempfile::tempdir().unwrap();
    let (code, _, err) = run(leasehold(folder.path()).args(["serve", "--listen", "0.0.0.0:3000"]));
    assert_eq!(code, 2);
    assert!(
        err.contains("--listen: listen: \"0.0.0.0:3000\" is open to other hosts"),
        "{err}"
    );
}
