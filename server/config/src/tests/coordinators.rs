//! Errors in the settings of ZooKeeper and Consul.

use super::mistakes::each_has_one_mistake;

/// A ZooKeeper backend of these lines; its own lines are 1 to 3.
fn zookeeper(lines: &str) -> String {
    format!("[[backend]]\nname = \"zk\"\nkind = \"zookeeper\"\n{lines}\n")
}

/// A Consul backend of these lines; its own lines are 1 to 3.
fn consul(lines: &str) -> String {
    format!("[[backend]]\nname = \"dc1\"\nkind = \"consul\"\n{lines}\n")
}

#[test]
fn connect_strings_and_paths_of_zookeeper_are_checked() {
    // Each part of the connect string, paths, TLS, and a password without its account.
    let connect = |text: &str| zookeeper(&format!("connect = \"{text}\""));
    let zookeeper_with = |lines: &str| zookeeper(&format!("connect = \"h:2181\"\n{lines}"));
    let file = format!(
        "ca_file = \"{}\"",
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")
    );
    each_has_one_mistake(&[
        (
            zookeeper(""),
            &["toml:1: backend.zk.connect", "is missing", "host:2181"],
        ),
        (
            connect("h"),
            &["toml:4: backend.zk.connect", "\"h\" without a port"],
        ),
        (connect("h:x"), &["not a host and a port"]),
        (connect("h:1,"), &["\"\" without a port"]),
        (connect("zk://h:2181"), &["is a URL"]),
        (connect("u:p@h:2181"), &["`user` and `password`"]),
        (connect("h:2181/app/"), &["ends with /"]),
        (connect("h:2181/a//b"), &["an empty or a relative part"]),
        (zookeeper_with("paths = []"), &["the list is empty"]),
        (zookeeper_with("paths = [\"locks\"]"), &["does not start with /"]),
        (zookeeper_with("requests_per_second = 5"), &["less than 100"]),
        (
            zookeeper_with("unlock_password = \"x\""),
            &["backend.zk.unlock_user"],
        ),
        (zookeeper_with("endpoints = [\"h\"]"), &["backend.zk.endpoints"]),
        (
            zookeeper_with(&file),
            &["TLS to ZooKeeper is not supported", "stunnel"],
        ),
    ]);
}

#[test]
fn urls_tokens_and_prefixes_of_consul_are_checked() {
    // The URL, a user where a token belongs, both forms of a secret, prefixes, and a TLS setting without effect.
    let consul_with = |lines: &str| consul(&format!("url = \"http://h:8500\"\n{lines}"));
    each_has_one_mistake(&[
        (consul(""), &["toml:1: backend.dc1.url", "is missing"]),
        (
            consul("url = \"h:8500\""),
            &["toml:4: backend.dc1.url", "http:// or https://"],
        ),
        (
            consul("url = \"http://u:p@h:8500\""),
            &["holds a user or a password"],
        ),
        (
            consul("url = \"http://h:8500/ui\""),
            &["more than a host and a port"],
        ),
        (consul_with("user = \"x\""), &["backend.dc1.user", "token_file"]),
        (consul_with("token = \"\""), &["backend.dc1.token"]),
        (consul_with("prefixes = [\"\"]"), &["would list every key"]),
        (consul_with("prefixes = [\"/locks\"]"), &["starts with /"]),
        (consul_with("server_name = \"x\""), &["not supported for Consul"]),
    ]);
}
