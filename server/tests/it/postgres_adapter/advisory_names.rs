//! Names for advisory keys, made by the functions of a real server and by a real library.

use std::collections::BTreeMap;

use ::backends::Backend;
use ::backends::postgres::PostgresBackend;
use ::config::postgres::AdvisoryNameConfig;
use sqlx::postgres::PgAdvisoryLock;

use super::watched_postgres::*;

/// `known as` and `named by` of every advisory lock, by its key.
async fn names(backend: &PostgresBackend) -> BTreeMap<String, (String, String)> {
    let mut names = BTreeMap::new();
    for name in observe(backend).await.names_in("advisory") {
        let (source, resource) = id("advisory", name);
        let raw = backend.inspect(&source, &resource).await.unwrap().raw;
        let field = |wanted: &str| {
            let field = raw.iter().find(|field| field.name == wanted);
            field.map_or_else(String::new, |field| field.value.clone())
        };
        names.insert(name.to_owned(), (field("known as"), field("named by")));
    }
    names
}

/// Takes a lock with each argument list, one after the other, and returns what they are named.
async fn named(arguments: &[&str], configured: &[&str]) -> Vec<(String, String)> {
    let server = server().await;
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    config.names = configured.iter().map(|name| (*name).to_owned()).collect();
    let backend = backend_of(&config);
    let mut found = Vec::new();
    for arguments in arguments {
        let mut session = user(&server.superuser_url()).await;
        run(&mut session, &format!("SELECT pg_advisory_lock({arguments})")).await;
        let names = names(&backend).await;
        assert_eq!(names.len(), 1, "{arguments}: {names:?}");
        found.extend(names.into_values());
        run(&mut session, "SELECT pg_advisory_unlock_all()").await;
    }
    found
}

#[tokio::test]
async fn keys_made_by_functions_of_the_server_are_named() {
    // Each expression is what a program sends; GoodJob's and pg-boss's are theirs.
    let cases = [
        ("hashtext('nightly')", "nightly", "hashtext"),
        (
            "hashtextextended('nightly', 0)",
            "nightly",
            "hashtextextended with seed 0",
        ),
        ("3, hashtext('nightly')", "3, nightly", "a number, hashtext"),
        (
            "hashtext('Überweisung'), 7",
            "Überweisung, 7",
            "hashtext, a number",
        ),
        (
            "hashtext('billing'), hashtext('nightly')",
            "billing, nightly",
            "hashtext, hashtext",
        ),
        (
            "('x' || substr(md5('nightly'), 1, 16))::bit(64)::bigint",
            "nightly",
            "GoodJob",
        ),
        (
            "('x' || substr(encode(sha256('nightly'), 'hex'), 1, 16))::bit(64)::bigint",
            "nightly",
            "sha256, big-endian",
        ),
        (
            "('x' || encode(sha224((current_database() || '.pgboss.pgboss')::bytea), 'hex'))::bit(64)::bigint",
            "pg-boss schema",
            "name of the database",
        ),
        (
            "hashtext('pg_partman run_maintenance')",
            "pg_partman maintenance",
            "hashtext",
        ),
    ];
    let found = named(
        &cases.map(|(key, ..)| key),
        &["nightly", "Überweisung", "billing"],
    )
    .await;
    for ((key, name, how), (known_as, named_by)) in cases.iter().zip(found) {
        assert_eq!(known_as, *name, "{key}");
        assert!(named_by.contains(how), "{key}: {named_by}");
    }
}

#[tokio::test]
async fn a_collision_is_ambiguous_and_an_unknown_key_has_no_name() {
    // Two texts with one CRC-32; the key of neither.
    let found = named(&["1306201125", "99"], &["plumless", "buckeroo"]).await;
    assert_eq!(found[0].0, "ambiguous: \"buckeroo\" or \"plumless\"");
    assert!(found[0].1.contains("\"plumless\" by crc32"), "{}", found[0].1);
    assert_eq!(found[1], (String::new(), String::new()));
}

#[tokio::test]
async fn a_lock_of_sqlx_is_named() {
    // The library's own lock, by its name.
    let server = server().await;
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    config.names = vec!["nightly".to_owned()];
    let lock = PgAdvisoryLock::new("nightly");
    let held = lock.acquire(user(&server.superuser_url()).await).await.unwrap();
    let names = names(&backend_of(&config)).await;
    let (known_as, named_by) = names.values().next().unwrap();
    assert!(known_as == "nightly" && named_by.contains("sqlx"), "{names:?}");
    held.release_now().await.unwrap();
}

#[tokio::test]
async fn a_configured_number_has_its_configured_name() {
    // A pair by its first number alone, and a number that is also the hash of a name.
    let server = server().await;
    let mut session = user(&server.superuser_url()).await;
    run(
        &mut session,
        "SELECT pg_advisory_lock(-3, 1), pg_advisory_lock(267906906)",
    )
    .await;
    let mut config = postgres_config(&server.superuser_url(), Vec::new());
    config.names = vec!["nightly".to_owned()];
    let entry = |key, key1, name: &str| AdvisoryNameConfig {
        key,
        key1,
        key2: None,
        name: name.to_owned(),
    };
    config.advisory_names = vec![
        entry(None, Some(-3), "shard lock"),
        entry(Some(267_906_906), None, "mine"),
    ];
    let names = names(&backend_of(&config)).await;
    let known: Vec<&str> = names.values().map(|(known_as, _)| known_as.as_str()).collect();
    assert_eq!(known, ["shard lock", "mine"], "{names:?}");
}
