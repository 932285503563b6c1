//! Every error has its place, message and remedy.

use super::load;

/// A redis backend with these lines added; its own lines are 1 to 4.
pub(super) fn redis(lines: &str) -> String {
    format!("[[backend]]\nname = \"cache\"\nkind = \"redis\"\nurls = [\"redis://c:6379\"]\n{lines}\n")
}

/// A Postgres backend with these lines added; its own lines are 1 to 4.
pub(super) fn postgres(lines: &str) -> String {
    format!("[[backend]]\nname = \"db\"\nkind = \"postgres\"\nurl = \"postgres://w@db/o\"\n{lines}\n")
}

/// An etcd backend of these lines; its own lines are 1 to 3.
fn etcd(lines: &str) -> String {
    format!("[[backend]]\nname = \"coord\"\nkind = \"etcd\"\n{lines}\n")
}

/// Each case has exactly one error, which contains each of the texts.
pub(super) fn each_has_one_mistake(cases: &[(String, &[&str])]) {
    for (file, expected) in cases {
        let errors = load(file, &[]).expect_err(file);
        assert_eq!(errors.0.len(), 1, "{file}\n{errors}");
        let text = errors.0[0].to_string();
        for part in *expected {
            assert!(text.contains(part), "{file}\n{text}\nlacks {part:?}");
        }
        assert!(!errors.0[0].remedy.is_empty(), "{text}");
    }
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    // A misspelled key at every level, a key of another table, and one without a similar key.
    each_has_one_mistake(&[
        (
            "listn = \"x\"".to_owned(),
            &["leasehold.toml:1: listn: ", "Did you mean `listen`?"],
        ),
        (
            "[lease]\nmax_tll = \"1h\"".to_owned(),
            &["toml:2: lease.max_tll", "`max_ttl`"],
        ),
        (
            redis("pol = \"2s\""),
            &["toml:5: backend.cache.pol:", "`poll_interval`"],
        ),
        (
            redis("colour = \"red\""),
            &["Known keys here: name, kind, poll_interval,"],
        ),
        (redis("max_ttl = \"1h\""), &["belongs to [lease]"]),
        (
            "[lease]\npublic_url = \"https://x\"".to_owned(),
            &["belongs to the top level"],
        ),
        (
            postgres("[[backend.lease_table]]\ntable = \"locks\"\ncolumns = { resourse = \"name\" }"),
            &["toml:7: backend.db.lease_table[0].columns.resourse", "`resource`"],
        ),
    ]);
}

#[test]
fn wrong_types_name_key_value_and_expected_form() {
    // One value of each TOML type, where another one is expected.
    each_has_one_mistake(&[
        (
            redis("poll_interval = 2"),
            &[
                "toml:5: backend.cache.poll_interval: found the integer 2.",
                "\"100ms\"",
            ],
        ),
        (
            redis("patterns = \"lock:*\""),
            &["found \"lock:*\"", "patterns = [\"lock:*\"]"],
        ),
        (redis("patterns = [1]"), &["found the integer 1 in the list"]),
        (
            postgres("advisory_locks = \"yes\""),
            &["found \"yes\"", "true or false"],
        ),
        (
            postgres("[[backend.advisory_name]]\nkey = 1.5\nname = \"x\""),
            &["a number with a fraction"],
        ),
        (
            postgres("[[backend.advisory_name]]\nkey1 = 5000000000\nkey2 = 1\nname = \"x\""),
            &["the integer 5000000000 is too large", "32 bits"],
        ),
        ("listen = true".to_owned(), &["listen: found the boolean true"]),
        ("lease = 5".to_owned(), &["found the integer 5", "[lease]"]),
        (
            "[backend]\nname = \"x\"".to_owned(),
            &["backend: found a table", "[[backend]]"],
        ),
        ("public_url = 2026-01-01".to_owned(), &["found a date"]),
    ]);
}

#[test]
fn values_out_of_range_name_the_range() {
    // Both ends of each range, one step outside.
    each_has_one_mistake(&[
        (
            redis("poll_interval = \"99ms\""),
            &["\"99ms\" is shorter than 100ms", "from \"100ms\" to \"10m\""],
        ),
        (redis("poll_interval = \"11m\""), &["\"11m\" is longer than 10m"]),
        (redis("poll_interval = \"2\""), &["\"2\" is not a duration"]),
        (
            redis("timeout = \"3m\"\nscan_timeout = \"5m\""),
            &["longer than 2m"],
        ),
        (redis("scan_timeout = \"1h\""), &["longer than 10m"]),
        (
            redis("scan_timeout = \"1s\""),
            &["toml:5", "timeout 5s", "scan_timeout 1s"],
        ),
        ("[lease]\nmax_ttl = \"0s\"".to_owned(), &["shorter than 1s"]),
        (
            "[lease]\nmax_ttl = \"2h\"\nmax_lifetime = \"1h\"".to_owned(),
            &["toml:3", "shorter than max_ttl (2h)"],
        ),
        (
            postgres("query_text = \"ful\""),
            &[
                "toml:5: backend.db.query_text",
                "did you mean \"full\"?",
                "\"normalized\"",
            ],
        ),
        ("log = \"leasehold=loud\"".to_owned(), &["is not a filter"]),
        ("log_format = \"jsn\"".to_owned(), &["did you mean \"json\"?"]),
        (
            "store = \"mysql://db\"".to_owned(),
            &["is neither sqlite: with a path nor a postgres:// URL"],
        ),
        (
            "public_url = \"https://x/path\"".to_owned(),
            &["more than scheme, host and port"],
        ),
    ]);
}

#[test]
fn names_are_unique_and_builtin_is_reserved() {
    // A duplicate name; the reserved name; invalid characters; no name.
    let repeated = redis(&redis(""));
    each_has_one_mistake(&[
        (
            repeated,
            &["toml:6: backend.cache.name: there is another backend called \"cache\""],
        ),
        (
            redis("").replace("\"cache\"", "\"builtin\""),
            &["Leasehold's own lease service"],
        ),
        (
            redis("").replace("\"cache\"", "\"Cache_1\""),
            &["toml:2: backend[0].name", "a-z, 0-9 and -"],
        ),
        (
            redis("").replace("name = \"cache\"\n", ""),
            &["toml:1: backend[0].name: is missing"],
        ),
        (
            redis("").replace("kind = \"redis\"", "kind = \"reddis\""),
            &["did you mean \"redis\"?"],
        ),
    ]);
}

#[test]
fn required_keys_of_each_kind_are_reported() {
    // Missing addresses, wrong schemes, empty lists, unsupported modes.
    each_has_one_mistake(&[
        (
            postgres("").replace("url = \"postgres://w@db/o\"\n", ""),
            &["backend.db.url: is missing", "url_file"],
        ),
        (
            postgres("").replace("postgres://w@db/o", "redis://db"),
            &["does not start with postgres://"],
        ),
        (
            redis("").replace("urls = [\"redis://c:6379\"]\n", ""),
            &["backend.cache.urls: is missing"],
        ),
        (
            redis("").replace("[\"redis://c:6379\"]", "[]"),
            &["the list is empty"],
        ),
        (
            redis("").replace("[\"redis", "[\"redis://a\", \"redis"),
            &["has 2 addresses, but mode is \"standalone\""],
        ),
        (redis("patterns = []"), &["the list is empty"]),
        (redis("patterns = [\"\"]"), &["matches no key"]),
        (etcd(""), &["backend.coord.endpoints: is missing"]),
        (
            etcd("endpoints = [\"a:2379\"]"),
            &["does not start with http:// or https://"],
        ),
        (
            etcd("endpoints = [\"http://a:2379\"]\nprefixes = [\"\"]"),
            &["would list every key"],
        ),
        (
            etcd("endpoints = [\"http://a:2379\"]\nprefixes = []"),
            &["the list is empty"],
        ),
    ]);
}

#[test]
fn referenced_files_must_exist() {
    // TLS files and secrets; half of a pair; both forms of one secret; an empty secret.
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (pem, empty) = (path("a.pem", "x"), path("empty", "\n"));
    each_has_one_mistake(&[
        (
            redis("ca_file = \"/nowhere/ca.pem\""),
            &["toml:5", "\"/nowhere/ca.pem\" cannot be read"],
        ),
        (
            redis(&format!("cert_file = {pem:?}")),
            &["key_file: is missing", "cert_file is set"],
        ),
        (redis(&format!("key_file = {pem:?}")), &["cert_file: is missing"]),
        (
            redis("password_file = \"/nowhere/password\""),
            &["cannot be read", "this user may read"],
        ),
        (redis(&format!("password_file = {empty:?}")), &["is empty"]),
        (
            redis(&format!("password = \"x\"\npassword_file = {pem:?}")),
            &["password is given too", "Remove one"],
        ),
        (redis(&format!("urls_file = {pem:?}")), &["urls is given too"]),
    ]);
}

#[test]
fn an_output_file_may_be_missing_but_not_its_folder() {
    // A folder instead of a file, a missing folder; then new files in existing folders.
    let folder = tempfile::tempdir().unwrap();
    let heads = |path: &str| format!("audit_checkpoint_file = {path:?}");
    each_has_one_mistake(&[
        (heads(folder.path().to_str().unwrap()), &["is not a file"]),
        (heads(""), &["is not a file"]),
        (
            heads("/nowhere/heads"),
            &["there is no folder /nowhere", "Write the path of a file"],
        ),
    ]);
    for path in [folder.path().join("heads"), "heads".into()] {
        let config = load(&heads(path.to_str().unwrap()), &[]).unwrap();
        assert_eq!(config.access.audit_checkpoint_file, Some(path));
    }
}

#[test]
fn all_errors_are_reported_in_file_order() {
    // Four errors in three backends and one variable are reported together.
    let file = format!(
        "listen = 5\n{}{}",
        redis("pol = \"1s\"\nscan_timeout = \"1s\""),
        postgres("timeout = \"1h\"")
    );
    let errors = load(&file, &[("LEASEHOLD_BACKEND__CACHE__POLL_INTERVAL", "1ms")]).unwrap_err();
    let places: Vec<String> = errors.0.iter().map(|error| error.origin.to_string()).collect();
    let expected = [
        "leasehold.toml:1",
        "leasehold.toml:6",
        "leasehold.toml:7",
        "leasehold.toml:12",
        "LEASEHOLD_BACKEND__CACHE__POLL_INTERVAL",
    ];
    assert_eq!(places, expected, "{errors}");
    assert!(
        errors
            .to_string()
            .starts_with("the configuration has 5 errors:\n  leasehold.toml:1: listen: ")
    );
}

#[test]
fn a_mistake_in_the_environment_names_the_variable() {
    // Misspelled top-level, nested and backend variables; a variable for an unknown backend.
    let cases: [(&str, &str, &[&str]); 5] = [
        (
            "LEASEHOLD_LISTN",
            "x",
            &["LEASEHOLD_LISTN: listn", "Did you mean LEASEHOLD_LISTEN?"],
        ),
        (
            "LEASEHOLD_LEASE__MAX_TLL",
            "1h",
            &["Did you mean LEASEHOLD_LEASE__MAX_TTL?"],
        ),
        (
            "LEASEHOLD_BACKEND__CACHE__POL",
            "1s",
            &["Did you mean LEASEHOLD_BACKEND__CACHE__POLL_INTERVAL?"],
        ),
        (
            "LEASEHOLD_BACKEND__CACHE__POLL_INTERVAL",
            "soon",
            &[
                "LEASEHOLD_BACKEND__CACHE__POLL_INTERVAL: ",
                "\"soon\" is not a duration",
            ],
        ),
        (
            "LEASEHOLD_BACKEND__CASHE__POLL_INTERVAL",
            "1s",
            &[
                "backend.cashe.kind: is missing",
                "LEASEHOLD_BACKEND__CASHE__POLL_INTERVAL",
            ],
        ),
    ];
    for (name, value, expected) in cases {
        let errors = load(&redis(""), &[(name, value)]).unwrap_err();
        assert_eq!(errors.0.len(), 1, "{errors}");
        for part in expected {
            assert!(errors.to_string().contains(part), "{errors}\nlacks {part:?}");
        }
    }
}
