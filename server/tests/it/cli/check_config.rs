//! `leasehold check-config`: from the file, the folder or the environment alone.

use std::fs;

use super::{leasehold, run};

const FILE: &str = "listen = \"127.0.0.1:4000\"\n\n[[backend]]\nname = \"orders-db\"\nkind = \"postgres\"\nurl = \"postgres://watch:c4nary@db/orders\"\n";

#[test]
fn settings_are_printed_with_their_origin_without_secrets() {
    // A named file and one variable over it.
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lh.toml"), FILE).unwrap();
    let mut command = leasehold(folder.path());
    command
        .args(["check-config", "--config", "lh.toml"])
        .env("LEASEHOLD_BACKEND__ORDERS_DB__POLL_INTERVAL", "5s");
    let (code, out, err) = run(&mut command);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let line = |key: &str| {
        let line = out
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_else(|| panic!("{key} in {out}"));
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("listen"), "listen \"127.0.0.1:4000\" lh.toml:1");
    assert_eq!(
        line("backend.orders-db.poll_interval"),
        "backend.orders-db.poll_interval \"5s\" LEASEHOLD_BACKEND__ORDERS_DB__POLL_INTERVAL"
    );
    assert_eq!(
        line("backend.orders-db.timeout"),
        "backend.orders-db.timeout \"5s\" default"
    );
    assert_eq!(
        line("backend.orders-db.url"),
        "backend.orders-db.url \"postgres://watch:***@db/orders\" lh.toml:6"
    );
    assert!(!out.contains("c4nary"));
    assert!(out.ends_with("No errors. 1 backend.\n"), "{out}");
}

#[test]
fn config_errors_exit_2_and_print_lines_on_stderr() {
    // Two errors in one file: both are printed, after the settings.
    let folder = tempfile::tempdir().unwrap();
    let file = FILE.replace("listen", "listn") + "pol = \"2s\"\n";
    fs::write(folder.path().join("leasehold.toml"), file).unwrap();
    // No --config: leasehold.toml of the folder.
    let (code, out, err) = run(leasehold(folder.path()).arg("check-config"));
    assert_eq!(code, 2);
    assert!(out.contains("backend.orders-db.kind"), "{out}");
    assert!(err.contains("the configuration has 2 errors"), "{err}");
    assert!(
        err.contains("leasehold.toml:1: listn: there is no such key here. Did you mean `listen`?"),
        "{err}"
    );
    assert!(err.contains("leasehold.toml:7: backend.orders-db.pol:"), "{err}");
}

#[test]
fn json_has_settings_and_errors_with_their_origins() {
    // The same for programs: everything on standard output, including errors.
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("leasehold.toml"),
        FILE.to_owned() + "pol = \"2s\"\n",
    )
    .unwrap();
    let (code, out, _) = run(leasehold(folder.path()).args(["check-config", "--json"]));
    assert_eq!(code, 2);
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(answer["ok"], false);
    assert_eq!(answer["file"], "leasehold.toml");
    assert_eq!(answer["settings"][0]["key"], "listen");
    assert_eq!(answer["settings"][0]["origin"]["line"], 1);
    assert_eq!(answer["errors"][0]["key"], "backend.orders-db.pol");
    assert_eq!(
        answer["errors"][0]["origin"],
        serde_json::json!({"kind": "file", "path": "leasehold.toml", "line": 7})
    );
}

#[test]
fn a_named_config_file_must_exist_but_none_is_required() {
    // A missing file is named. Without any configuration the defaults apply, with a message about the missing backends.
    let folder = tempfile::tempdir().unwrap();
    let (code, out, err) = run(leasehold(folder.path()).args(["check-config", "--config", "nowhere.toml"]));
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("nowhere.toml: cannot be read"), "{err}");
    let (code, out, _) = run(leasehold(folder.path()).arg("check-config"));
    assert_eq!(code, 0);
    assert!(
        out.contains("Read no file") && out.contains("no [[backend]] is configured"),
        "{out}"
    );
}

#[test]
fn sign_in_is_described_and_an_invalid_certificate_is_an_error() {
    // On this machine alone, behind a proxy, and with files that hold no certificate.
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        fs::write(folder.path().join("leasehold.toml"), text).unwrap();
        run(leasehold(folder.path()).arg("check-config"))
    };
    let (code, out, _) = check(FILE);
    assert_eq!(code, 0);
    assert!(
        out.contains("http://127.0.0.1:4000: it listens on 127.0.0.1:4000, for this machine only"),
        "{out}"
    );
    let behind = "listen = \"0.0.0.0:80\"\npublic_url = \"https://l.example.com\"\nproxy = { trusted = [\"10.0.0.1\"] }";
    let (code, out, _) = check(behind);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("https://l.example.com: it listens on 0.0.0.0:80 for the proxy in 10.0.0.1/32 only"),
        "{out}"
    );
    fs::write(folder.path().join("any.pem"), "any").unwrap();
    let (code, _, err) =
        check("listen = \"0.0.0.0:443\"\n[tls]\ncert_file = \"any.pem\"\nkey_file = \"any.pem\"");
    assert_eq!(code, 2);
    assert!(
        err.contains("leasehold.toml:3: tls.cert_file: any.pem holds no certificate. Write "),
        "{err}"
    );
}

#[test]
fn a_default_file_that_is_a_broken_link_is_an_error() {
    // No --config: the file of the folder links to nothing, as on a volume that is not mounted.
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("leasehold.toml");
    std::os::unix::fs::symlink(folder.path().join("missing"), link).unwrap();
    let (code, _, err) = run(leasehold(folder.path()).arg("check-config"));
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("leasehold.toml: cannot be read"), "{err}");
}
