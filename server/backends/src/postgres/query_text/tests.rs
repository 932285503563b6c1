//! Known statements, and statements of random tokens whose literals contain a canary.

use proptest::prelude::*;

use super::*;

const CANARY: &str = "c4nary";

#[test]
fn each_form_of_literal_is_replaced() {
    for (sql, expected) in [
        ("ALTER ROLE x PASSWORD 'it''s secret'", "ALTER ROLE x PASSWORD ?"),
        ("select E'a\\'b', e'\\\\', n'x', N''", "select ?, ?, ?, ?"),
        (
            "SELECT U&'d\\0061t' UESCAPE '!', u&\"d\\0061t\"",
            "SELECT ? UESCAPE ?, u&\"d\\0061t\"",
        ),
        ("SELECT B'101', x'1F'::bit(8)", "SELECT ?, ?::bit(?)"),
        ("DO $$ SELECT 'x' $$ LANGUAGE sql", "DO ? LANGUAGE sql"),
        ("SELECT $a$ $b$ 'x' $$ $a$, $1, $2::int", "SELECT ?, $1, $2::int"),
        ("SELECT $ä1$ä1$ $ä1$, b", "SELECT ?, b"),
        ("LIMIT 10 OFFSET 1_000", "LIMIT ? OFFSET ?"),
        (
            "VALUES (1.5e-3, .5, 0xFF, -7, 1e5, 1E+5)",
            "VALUES (?, .?, ?, -?, ?, ?)",
        ),
        ("x=4111111111111111 AND y=2-1", "x=? AND y=?-?"),
        ("id = 550e8400-e29b", "id = ?-e29b"),
        ("date '2026-04-01'::text, t1.c2", "date ?::text, t1.c2"),
        ("\"a'b\"\"c\" = 'd\"e' || \"f\"", "\"a'b\"\"c\" = ? || \"f\""),
        (
            "SELECT 1 -- 'a\n, b /* 'c /* d */ e' */ , f",
            "SELECT ?  \n, b   , f",
        ),
        ("SELECT 'a'\n'b'", "SELECT ?\n?"),
        ("SELECT a$b$c, 'd'", "SELECT a$b$c, ?"),
        ("SELECT fooE'a\\\\'", "SELECT fooE?"),
        ("größe = 'é'", "größe = ?"),
        ("a <@ b ->> 'c' #>> '{d}'", "a <@ b ->> ? #>> ?"),
        ("", ""),
    ] {
        assert_eq!(without_literals(sql), expected, "{sql}");
    }
}

#[test]
fn a_literal_without_a_certain_end_hides_the_rest() {
    // Truncated by Postgres or by us; a backslash whose meaning depends on the session's
    // settings.
    for (sql, expected) in [
        ("SELECT 'secret", "SELECT ?…"),
        ("SELECT 'secret''", "SELECT ?…"),
        ("SELECT E'a\\'", "SELECT ?…"),
        ("SELECT E'a\\", "SELECT ?…"),
        ("SELECT $x$ secret $x", "SELECT ?…"),
        ("SELECT $x", "SELECT $x"),
        ("SELECT U&'x", "SELECT ?…"),
        ("SELECT /* secret", "SELECT  "),
        ("SELECT -- secret", "SELECT  "),
        ("SELECT \"name", "SELECT \"name"),
        ("SELECT 'a\\'; secret'", "SELECT ?…"),
        ("SELECT 'a\\\\', b", "SELECT ?, b"),
        ("SELECT E'a'\n'\\'secret'", "SELECT ?\n?…"),
        ("SELECT 1a$b$ secret $b$", "SELECT ?…"),
    ] {
        assert_eq!(without_literals(sql), expected, "{sql}");
    }
}

#[test]
fn each_query_text_mode_shows_its_part() {
    let query = || Some("SELECT 'a'".to_owned());
    assert_eq!(apply_mode(query(), QueryText::Full), query());
    assert_eq!(
        apply_mode(query(), QueryText::Normalized).as_deref(),
        Some("SELECT ?")
    );
    assert_eq!(apply_mode(query(), QueryText::Hidden).as_deref(), Some(NOT_SHOWN));
    assert_eq!(apply_mode(None, QueryText::Normalized), None);
}

/// A token, and whether it is a literal or a comment.
fn token() -> impl Strategy<Value = (String, bool)> {
    // Text before and after the canary inside a literal.
    let text = "[a-zé \\n?;,(){}$\"/*-]{0,6}";
    let hidden = (text, text, 0..9_usize).prop_map(|(before, after, form)| {
        let inside = format!("{before}{CANARY}{after}");
        match form {
            0 => format!("'{inside}'"),
            1 => format!("'{before}''{CANARY}''{after}'"),
            2 => format!("E'{before}\\'{CANARY}\\\\{after}'"),
            3 => format!("e'{before}\\\\''{inside}'"),
            4 => format!("U&'{inside}'"),
            5 => format!("$tag${}$tag$", inside.replace('$', "")),
            6 => format!("$$ 'x {} \\' $$", inside.replace('$', "'")),
            7 => format!("/* {} */", inside.replace(['*', '/'], "'")),
            _ => format!("-- {}\n", inside.replace('\n', "'")),
        }
    });
    let number = "31337[0-9]{0,9}(\\.[0-9]{1,3})?(e[+-]?[0-9]{1,2})?";
    // Names without the beginnings of the canaries.
    let unmasked = prop_oneof![
        "[a-zA-Z_é][a-z0235689_$é]{0,6}",
        "\"[a-z'$]{1,5}(\"\")?[-/*a-z']{1,5}\"",
        "[(),;=<>+*|]",
        "\\$[1-9]",
        "::[a-z]{1,5}",
    ];
    prop_oneof![
        hidden.prop_map(|text| (text, true)),
        number.prop_map(|text| (text, true)),
        unmasked.prop_map(|text| (text, false)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn no_literal_survives_and_other_text_stays(tokens in proptest::collection::vec(token(), 1..12)) {
        let sql: Vec<&str> = tokens.iter().map(|(text, _)| text.as_str()).collect();
        let out = without_literals(&sql.join(" "));
        prop_assert!(!out.contains(CANARY) && !out.contains("31337"), "{out}");
        let kept = tokens.iter().filter(|(_, is_literal)| !is_literal);
        let mut rest = out.as_str();
        for (text, _) in kept {
            let at = rest.find(text.as_str());
            prop_assert!(at.is_some(), "{text:?} is missing in {out:?}");
            rest = &rest[at.unwrap() + text.len()..];
        }
    }

    #[test]
    fn a_cut_anywhere_shows_no_literal(tokens in proptest::collection::vec(token(), 1..12), cut in 0..200_usize) {
        let sql: Vec<&str> = tokens.iter().map(|(text, _)| text.as_str()).collect();
        let cut: String = sql.join(" ").chars().take(cut).collect();
        let out = without_literals(&cut);
        prop_assert!(!out.contains("c4") && !out.contains("313"), "{cut:?} gave {out:?}");
    }

    #[test]
    fn any_text_is_read_to_its_end(sql in "\\PC{0,80}|[-'\"$\\\\/*eEuU&b0-9a. \\n]{0,60}") {
        let out = without_literals(&sql);
        prop_assert!(out.chars().count() <= sql.chars().count() + 1, "{out}");
        // The remaining text opens no literal.
        prop_assert!(!out.contains('\'') || out.contains('"'), "{out}");
    }
}
