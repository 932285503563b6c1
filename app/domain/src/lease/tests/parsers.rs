//! Parsers of names, lease ids and scopes.

use super::super::validation_error::ValidationError;
use super::*;

#[test]
fn names_are_refused_by_byte_length_control_and_edge() {
    // Every rejected class with its field; unusual but valid names are unchanged.
    let refused = |text: &str| {
        names::resource(text)
            .err()
            .map(|error: ValidationError| error.field)
    };
    for bad in [
        "",
        "a\0b",
        "a\nb",
        "\u{7f}a",
        "\u{85}b",
        "a\u{061c}b",
        "a\u{200e}b",
        "a\u{202e}b",
        "a\u{2067}b",
        " a",
        "a ",
        "a\u{a0}",
        "\u{3000}a",
    ] {
        assert_eq!(refused(bad).as_deref(), Some("resource"), "{bad:?}");
    }
    assert_eq!(refused(&"é".repeat(256)), None);
    assert_eq!(refused(&"é".repeat(257)).as_deref(), Some("resource"));
    assert_eq!(refused("a b é e\u{301} \u{1F512} 'x' %_\\"), None);
    assert!(names::owner(&"o".repeat(257)).is_err_and(|error| error.field == "ownerId"));
    assert!(names::idempotency_key(b"a b").is_err() && names::idempotency_key(&[b'k'; 129]).is_err());
    assert_eq!(names::idempotency_key(&[b'k'; 128]).map(str::len), Ok(128));
}

#[test]
fn a_malformed_lease_id_is_no_id() {
    // Upper case, braces, no hyphens, a multi-byte character in place of a hyphen.
    let good = "0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";
    assert!(LeaseId::parse(good).is_some());
    for bad in [
        good.to_uppercase(),
        good.replace('-', ""),
        format!("{{{good}}}"),
        good.replace('0', "é"),
        String::new(),
    ] {
        assert_eq!(LeaseId::parse(&bad), None, "{bad}");
    }
}

#[test]
fn a_scope_is_whole_segments() {
    // `team_a` does not cover `team_ab`, and the underscore is no wildcard.
    let scope = Scope::prefixes(["team_a".to_owned(), "x:".to_owned()]);
    for (name, covered) in [
        ("team_a", true),
        ("team_a:y", true),
        ("team_a/y", true),
        ("team_ab", false),
        ("teamXa:y", false),
        ("x:", true),
        ("x:1", true),
        ("x", false),
    ] {
        assert_eq!(scope.covers(name), covered, "{name}");
    }
    assert!(!Scope::prefixes([]).covers("anything") && Scope::everything().covers("anything"));
}
