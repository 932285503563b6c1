//! Mistakes in `[[backend.lease_table]]` and in names for advisory keys.

use super::mistakes::{each_has_one_mistake, postgres};

#[test]
fn lease_tables_are_checked() {
    // Names, presets, columns, conditions and channels; missing and duplicate keys.
    let table = |lines: &str| postgres(&format!("[[backend.lease_table]]\n{lines}"));
    each_has_one_mistake(&[
        (
            table(""),
            &["toml:5: backend.db.lease_table[0].table: is missing"],
        ),
        (table("table = \"a.b.c\""), &["is not the name of a table"]),
        (
            table("table = \"locks\"\npreset = \"shedlok\""),
            &["did you mean \"shedlock\"?"],
        ),
        (
            table("table = \"locks\"\ncolumns = { resource = \"\" }"),
            &["is required for a lease table"],
        ),
        (
            table("table = \"locks\"\nnotify = \"\""),
            &["is empty", "channel"],
        ),
        (
            table("table = \"l\"\n[[backend.lease_table]]\ntable = \"l\""),
            &["\"l\" is listed twice"],
        ),
        (
            table("table = \"jobs\"\npreset = \"shedlock\"\nstale_after = \"5m\""),
            &["stale_after: needs a heartbeat column", "heartbeat ="],
        ),
        (
            table("table = \"jobs\"\ncolumns = { heartbeat = \"seen_at\" }"),
            &["stale_after: is missing", "5m"],
        ),
        (
            table("table = \"jobs\"\nheld_when = \"true) OR (true\""),
            &["held_when", "closes a parenthesis", "locked_at IS NOT NULL"],
        ),
        (
            table("table = \"jobs\"\nexpires_unit = \"second\""),
            &["did you mean \"seconds\"?"],
        ),
        (
            table("table = \"s\"\npreset = \"shedlock\"\nrelease = \"delete\""),
            &["release: is fixed for the preset \"shedlock\"", "Remove it"],
        ),
        (
            table("table = \"jobs\"\nstale_after = \"10ms\""),
            &["is shorter than 1s"],
        ),
    ]);
}

#[test]
fn names_of_advisory_keys_are_checked() {
    // A key by its number, the texts that programs hash, the addresses of poolers.
    let name = |lines: &str| postgres(&format!("[[backend.advisory_name]]\n{lines}"));
    each_has_one_mistake(&[
        (name("name = \"x\""), &["names no key", "`names`"]),
        (
            name("key = 1\nkey1 = 1\nkey2 = 1\nname = \"x\""),
            &["more than one key"],
        ),
        (
            postgres("poolers = [\"bouncer\"]"),
            &["is not an IP address or network", "socket"],
        ),
        (postgres("names = []"), &["the list is empty", "billing-close"]),
        (postgres("names = [\"\"]"), &["is empty", "billing-close"]),
        (name("key1 = 1\nname = \"x\""), &["key2: is missing"]),
        (name("key = 1"), &["name: is missing"]),
    ]);
}
