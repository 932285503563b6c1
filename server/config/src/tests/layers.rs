//! Precedence of layers, and reported origins.

use std::time::Duration;

use secrecy::ExposeSecret;

use super::super::backend::SystemConfig;
use super::super::redis::RedisValues;
use super::super::{Config, Origin};
use super::{listen_flag, load, load_report, sources};

const BACKENDS: &str = r#"
[[backend]]
name = "orders-db"
kind = "postgres"
url = "postgres://watch:s3cret@db/orders"

[[backend]]
name = "cache"
kind = "redis"
urls = ["redis://127.0.0.1:6379"]
"#;

#[test]
fn defaults_then_file_then_environment_then_flags() {
    // The same key in more and more layers; the last one wins and is the origin.
    let file = "listen = \"127.0.0.1:4000\"";
    let variables = [("LEASEHOLD_LISTEN", "127.0.0.1:5000")];
    let mut flags = sources(file, &variables);
    flags.flags.push(listen_flag("[::1]:6000"));
    let seen = [
        sources("", &[]),
        sources(file, &[]),
        sources(file, &variables),
        flags,
    ]
    .map(|sources| {
        let loaded = super::super::read(&sources);
        let entry = loaded
            .entries
            .into_iter()
            .find(|entry| entry.key == "listen")
            .unwrap();
        (loaded.config.unwrap().listen.port(), entry.origin.to_string())
    });
    let expected = [
        (3000, "default"),
        (4000, "leasehold.toml:1"),
        (5000, "LEASEHOLD_LISTEN"),
        (6000, "--listen"),
    ];
    assert_eq!(seen, expected.map(|(port, origin)| (port, origin.to_owned())));
}

#[test]
fn no_input_is_the_default_configuration() {
    // Without any source the reader's defaults equal `Config::default`, which the demo uses.
    let read = Config::load(&super::super::ConfigSources::default()).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", Config::default()));
    assert_eq!(read.store.expose_secret(), "sqlite:leasehold.db");
    assert!(
        !format!("{read:?}").contains("leasehold.db"),
        "a store's URL may hold a password"
    );
}

#[test]
fn the_environment_reaches_nested_keys_and_backends_by_name() {
    // Every type in a variable: duration, boolean, list with commas, TOML list, table, enum.
    let config = load(
        BACKENDS,
        &[
            ("LEASEHOLD_LEASE__MAX_TTL", "30m"),
            ("LEASEHOLD_BACKEND__ORDERS_DB__POLL_INTERVAL", "500ms"),
            ("LEASEHOLD_BACKEND__ORDERS_DB__ADVISORY_LOCKS", "false"),
            (
                "LEASEHOLD_BACKEND__ORDERS_DB__LEASE_TABLE",
                r#"[{ table = "jobs.locks", preset = "shedlock" }]"#,
            ),
            ("LEASEHOLD_BACKEND__CACHE__PATTERNS", "lock:*, mutex:*"),
            ("LEASEHOLD_BACKEND__CACHE__URLS", r#"["rediss://cache:6380"]"#),
            ("LEASEHOLD_BACKEND__CACHE__VALUE_DISPLAY", "plain"),
            ("LEASEHOLD_PUBLIC_URL", ""),
            ("LEASEHOLD_SERVER", "http://127.0.0.1:1"),
            ("LEASEHOLD_CACHE", "/tmp/tools"),
            ("LEASEHOLD_RESOURCE", "jobs/a"),
            ("LEASEHOLD_LEASE_ID", "l_1"),
            ("LEASEHOLD_FENCING_TOKEN", "7"),
            ("LEASEHOLD_SERVICE_HOST", "10.0.0.1"),
        ],
    )
    .unwrap();
    assert_eq!(config.lease.max_ttl, Duration::from_secs(1800));
    assert_eq!(config.public_url, None, "an empty variable counts as not set");
    let [orders, cache] = config.backends.as_slice() else {
        panic!("two backends")
    };
    assert_eq!(orders.poll_interval, Duration::from_millis(500));
    let SystemConfig::Postgres(postgres) = &orders.system else {
        panic!("postgres")
    };
    assert!(!postgres.advisory_locks);
    assert_eq!(postgres.lease_tables[0].table, "jobs.locks");
    let SystemConfig::Redis(redis) = &cache.system else {
        panic!("redis")
    };
    assert_eq!(redis.patterns, ["lock:*", "mutex:*"]);
    assert_eq!(redis.urls[0].expose_secret(), "rediss://cache:6380");
    assert_eq!(redis.value_display, RedisValues::Plain);
}

#[test]
fn a_glob_with_brackets_in_a_variable_is_text() {
    // `[ab]lock:*` begins like a TOML list but is a string.
    let config = load(BACKENDS, &[("LEASEHOLD_BACKEND__CACHE__PATTERNS", "[ab]lock:*")]).unwrap();
    let SystemConfig::Redis(redis) = &config.backends[1].system else {
        panic!("redis")
    };
    assert_eq!(redis.patterns, ["[ab]lock:*"]);
}

#[test]
fn a_backend_can_be_configured_by_variables_only() {
    // No file: kind, endpoints and poll interval from variables.
    let config = load(
        "",
        &[
            ("LEASEHOLD_BACKEND__MY_COORD__KIND", "etcd"),
            (
                "LEASEHOLD_BACKEND__MY_COORD__ENDPOINTS",
                "http://a:2379,http://b:2379",
            ),
        ],
    )
    .unwrap();
    assert_eq!(config.backends[0].name.as_str(), "my-coord");
    let SystemConfig::Etcd(etcd) = &config.backends[0].system else {
        panic!("etcd")
    };
    assert_eq!(etcd.endpoints, ["http://a:2379", "http://b:2379"]);
}

#[test]
fn secret_from_the_environment_overrides_the_secret_file() {
    // The file has `url`, a variable `url_file`: the variable wins although the key differs.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("url");
    std::fs::write(&path, "postgres://watch:0ther@db/orders\n").unwrap();
    let path = path.to_str().unwrap();
    let variables = [
        ("LEASEHOLD_BACKEND__ORDERS_DB__URL_FILE", path),
        ("LEASEHOLD_BACKEND__CACHE__PASSWORD_FILE", path),
    ];
    let loaded = load_report(BACKENDS, &variables);
    let config = loaded.config.unwrap();
    let SystemConfig::Postgres(postgres) = &config.backends[0].system else {
        panic!("postgres")
    };
    assert_eq!(postgres.url.expose_secret(), "postgres://watch:0ther@db/orders");
    let entry = loaded
        .entries
        .iter()
        .find(|entry| entry.key == "backend.orders-db.url_file")
        .unwrap();
    assert_eq!(
        entry.value,
        format!("{path:?} holding \"postgres://watch:***@db/orders\"")
    );
    assert_eq!(
        entry.origin,
        Origin::Environment {
            name: variables[0].0.to_owned()
        }
    );
    assert!(
        !loaded
            .entries
            .iter()
            .any(|entry| entry.key == "backend.orders-db.url")
    );
}

#[test]
fn the_configuration_report_contains_no_secret() {
    // Canaries in every secret key and in a URL's query appear neither in check-config nor in Debug output.
    let file = r#"
store = "postgres://u:c4nary@db/store"
[[backend]]
name = "a"
kind = "postgres"
url = "postgres://u:c4nary@db/orders?password=c4nary"
unlock_url = "postgres://c4nary@db:x/orders"
password = "c4nary"
[[backend]]
name = "b"
kind = "redis"
urls = ["redis://c4nary@cache:6379", "c4nary"]
[[backend]]
name = "c"
kind = "etcd"
endpoints = ["http://u:c4nary@coord:2379"]
"#;
    let loaded = load_report(file, &[]);
    assert!(
        !format!("{:?}", loaded.entries).contains("c4nary"),
        "{:#?}",
        loaded.entries
    );
    let errors = loaded.config.unwrap_err().to_string();
    assert!(!errors.contains("c4nary"), "{errors}");
}
