//! `lease.store`: one store or several, and what is wrong with a list of them.

use super::load_report;
use super::mistakes::each_has_one_mistake;

#[test]
fn an_incomplete_lease_store_names_what_is_missing() {
    // A prefix, credentials outside of the address, an account for the password, TLS where it is configured.
    each_has_one_mistake(&[
        (
            "[lease]\nstore = \"etcd://a:2379\"".to_owned(),
            &[
                "toml:2: lease.store",
                "names no prefix",
                "etcd://a:2379,b:2379,c:2379/leasehold/",
            ],
        ),
        (
            "[lease]\nstore = \"redis://a/b\"".to_owned(),
            &[
                "lease.store",
                "neither an etcd:// nor an etcds:// nor a postgres:// address",
            ],
        ),
        (
            "[lease]\nstore = \"etcd://u@a/l/\"".to_owned(),
            &["lease.store", "belong in `user` and `password`"],
        ),
        (
            "[lease]\nstore = \"etcd://a/l/\"\npassword = \"x\"".to_owned(),
            &["lease.user", "the password belongs to"],
        ),
        (
            "[lease]\nuser = \"u\"".to_owned(),
            &["toml:2: lease.user", "lease.store names no store of the leases"],
        ),
        (
            "[lease]\nstore = \"etcd://a/l/\"\nserver_name = \"x\"".to_owned(),
            &["lease.store", "etcds://"],
        ),
        (
            "[lease]\nstore = \"etcd://a/l/\"\nmax_clock_skew = \"11s\"".to_owned(),
            &["longer than 10s"],
        ),
    ]);
}

#[test]
fn a_wrong_list_of_lease_stores_names_its_mistake() {
    // The number, two kinds, a file, one database twice, a password in an address, and keys that have no effect.
    let stores = |list: &str| format!("[lease]\nstore = [{list}]");
    each_has_one_mistake(&[
        (
            stores("\"postgres://a/l\", \"postgres://b/l\", \"postgres://c/l\""),
            &[
                "toml:2: lease.store",
                "names 3 stores",
                "power of two",
                "cannot change",
            ],
        ),
        (
            stores("\"postgres://a/l\", \"etcd://b/l/\""),
            &["lease.store", "of another kind than the first", "for all shards"],
        ),
        (
            stores("\"postgres://a/l\", \"sqlite:l.db\""),
            &["lease.store", "an SQLite file", "Remove lease.store"],
        ),
        (
            stores("\"postgres://u@a/l\", \"postgres://v@A:5432/l\""),
            &["lease.store", "named twice", "a database of its own"],
        ),
        (
            stores("\"etcd://a,b/l/\", \"etcd://b,c/l/\""),
            &["lease.store", "named twice", "or a prefix"],
        ),
        (
            stores("\"postgres://u:p@a/l\", \"postgres://b/l\""),
            &["lease.store", "belongs in `password` or `password_file`"],
        ),
        (
            format!(
                "{}\nuser = \"u\"",
                stores("\"postgres://a/l\", \"postgres://b/l\"")
            ),
            &[
                "toml:3: lease.user",
                "lease.store names Postgres",
                "into the address",
            ],
        ),
    ]);
}

#[test]
fn lease_stores_are_shown_without_accounts() {
    let toml = "[lease]\nstore = [\"postgres://u@a/l?sslmode=require\", \"postgres://u@b/l\"]\npassword = \"secret\"";
    let loaded = load_report(toml, &[]);
    let entry = loaded.entries.iter().find(|entry| entry.key == "lease.store");
    assert_eq!(entry.unwrap().value, "[\"postgres://a/l\", \"postgres://b/l\"]");
    let stores = loaded.config.unwrap().lease.store.unwrap();
    assert_eq!(stores.addresses(), ["postgres://a/l", "postgres://b/l"]);
    // In a variable: a list, or one address with its commas.
    let list = "[\"etcd://a,b/l/\", \"etcd://c,d/l/\"]";
    let of_variable = |value| {
        let loaded = load_report("", &[("LEASEHOLD_LEASE__STORE", value)]);
        loaded.config.unwrap().lease.store.unwrap().addresses().len()
    };
    assert_eq!((of_variable(list), of_variable("etcd://a,b/l/")), (2, 1));
}
