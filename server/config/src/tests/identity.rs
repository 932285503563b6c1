//! Identity rules: what they may name, and what each mistake says.

use domain::waits::IdentityField;

use super::load;
use super::mistakes::each_has_one_mistake;

const BACKENDS: &str = r#"
[[backend]]
name = "db"
kind = "postgres"
url = "postgres://w@db/o"
[[backend]]
name = "cache"
kind = "redis"
urls = ["redis://c:6379"]
"#;

/// A rule whose only or second match has these lines.
fn rule(lines: &str) -> String {
    format!("{BACKENDS}[[identity]]\nname = \"workers\"\n[[identity.match]]\n{lines}\n")
}

#[test]
fn a_rule_names_backends_fields_and_templates() {
    let file = rule(
        "backend = \"db\"\nfield = \"application_name\"\ntemplate = \"{service}-{pod}\"\n\
         [[identity.match]]\nbackend = \"builtin\"\nfield = \"owner\"\ntemplate = \"{service}/{pod}\"",
    );
    let config = load(&file, &[]).unwrap();
    let [rule] = config.identity_rules.as_slice() else {
        panic!("{:?}", config.identity_rules)
    };
    assert_eq!((rule.name.as_str(), rule.matches.len()), ("workers", 2));
    assert_eq!(rule.matches[0].field, IdentityField::ApplicationName);
    assert_eq!(rule.matches[1].template.to_string(), "{service}/{pod}");
    // As a variable, it replaces those of the file.
    let list = r#"[{ name = "x", match = [{ backend = "db", field = "user", template = "{u}" }] }]"#;
    let config = load(&file, &[("LEASEHOLD_IDENTITY", list)]).unwrap();
    assert_eq!(config.identity_rules[0].name, "x");
    assert!(load(BACKENDS, &[]).unwrap().identity_rules.is_empty());
}

#[test]
fn a_rule_that_could_join_nothing_or_everything_is_refused() {
    let rule_with = |backend: &str, field: &str, template: &str| {
        rule(&format!(
            "backend = \"{backend}\"\nfield = \"{field}\"\ntemplate = \"{template}\""
        ))
    };
    let other_placeholders = rule(
        "backend = \"db\"\nfield = \"user\"\ntemplate = \"{a}\"\n\
         [[identity.match]]\nbackend = \"builtin\"\nfield = \"owner\"\ntemplate = \"{b}\"",
    );
    let repeated = format!(
        "{}[[identity]]\nname = \"workers\"\nmatch = [{{ backend = \"db\", field = \"user\", template = \"{{a}}\" }}]\n",
        rule_with("db", "user", "{a}")
    );
    each_has_one_mistake(&[
        (
            rule_with("orders", "user", "{a}"),
            &[
                "toml:13: identity[0].match[0].backend: no backend is named \"orders\"",
                "builtin, db, cache",
            ],
        ),
        (
            rule_with("db", "owner", "{a}"),
            &["postgres reports application_name", "\"application_name\""],
        ),
        (rule_with("db", "userr", "{a}"), &["did you mean \"user\"?"]),
        (
            rule_with("cache", "owner", "{a}"),
            &["redis reports no waiters", "Remove this match"],
        ),
        (
            rule_with("db", "user", "a"),
            &["toml:15", "every owner would be the same", "{service}-{pod}"],
        ),
        (
            rule_with("db", "user", "{a}{b}"),
            &["directly after another placeholder"],
        ),
        (
            other_placeholders,
            &["has other placeholders than \"{a}\"", "Use {a} in each template"],
        ),
        (repeated, &["another rule called \"workers\"", "unique name"]),
        (
            format!("{BACKENDS}[[identity]]\nname = \"workers\"\n"),
            &["identity[0].match", "[[identity.match]]"],
        ),
        (
            rule_with("db", "user", "{a}\"\nflavour = \"x"),
            &["identity[0].match[0].flavour", "Known keys here:"],
        ),
    ]);
}
