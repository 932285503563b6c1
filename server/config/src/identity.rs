//! `[[identity]]`: rules by which owners of different backends are recognized as one program.

use domain::backend::BackendKind;
use domain::names::BackendName;
use domain::waits::IdentityField;
use domain::waits::identity::{IdentityMatch, IdentityRule, IdentityTemplate, refuse_field};

use super::backend::{BackendConfig, RESERVED_NAME};
use super::reader::Section;
use super::value_parsers;

/// Longest name of a rule, in characters.
const NAME_CHARS_MAX: usize = 60;

/// All rules. `backends` are those that could be read.
pub(super) fn read_all(root: &mut Section<'_>, backends: &[BackendConfig]) -> Vec<IdentityRule> {
    let mut rules: Vec<IdentityRule> = Vec::new();
    for mut section in root.sections("identity", "identity") {
        let name = section.required("name", &name());
        let tables = section.sections("match", "identity.match");
        if tables.is_empty() && !section.has("match") {
            section.report_missing(
                "match",
                "Write one [[identity.match]] for each backend on which the rule recognizes owners.",
            );
        }
        let mut matches: Vec<IdentityMatch> = Vec::new();
        for table in tables {
            matches.extend(read_match(table, backends, matches.first()));
        }
        if let Some(name) = name {
            if rules.iter().any(|other| other.name == name) {
                let message = format!("there is another rule called {name:?}");
                let origin = section.place_of("name");
                section.error_at(
                    "name",
                    &origin,
                    message,
                    "Give each rule a unique name.".to_owned(),
                );
            }
            rules.push(IdentityRule { name, matches });
        }
        section.finish();
    }
    rules
}

/// `first` is the first match of the rule: all have the same placeholders.
fn read_match(
    mut section: Section<'_>,
    backends: &[BackendConfig],
    first: Option<&IdentityMatch>,
) -> Option<IdentityMatch> {
    let backend = section.required("backend", &backend_name());
    let field = section.required("field", &value_parsers::choice::<IdentityField>());
    let template = section.required("template", &template());
    let backend = backend.and_then(|name| BackendName::parse(&name).ok());
    let kind = backend.as_ref().map(|name| kind_of(name, backends));
    if let Some((name, None)) = backend.as_ref().zip(kind) {
        let origin = section.place_of("backend");
        let names: Vec<&str> = std::iter::once(RESERVED_NAME)
            .chain(backends.iter().map(|backend| backend.name.as_str()))
            .collect();
        section.error_at(
            "backend",
            &origin,
            format!("no backend is named \"{name}\""),
            format!("Write one of {}.", names.join(", ")),
        );
    }
    if let Some((Some(kind), field)) = kind.zip(field)
        && let Some(why) = refuse_field(kind, field)
    {
        let (key, remedy) = match kind.identity_fields() {
            [] => (
                "backend",
                "Remove this match: the rule could never apply.".to_owned(),
            ),
            [only] => ("field", format!("Write {:?}.", only.as_str())),
            [first, ..] => (
                "field",
                format!("Write one of these, such as {:?}.", first.as_str()),
            ),
        };
        let origin = section.place_of(key);
        section.error_at(key, &origin, why, remedy);
    }
    let template = template.and_then(|text| IdentityTemplate::parse(&text).ok());
    if let Some((template, first)) = template.as_ref().zip(first)
        && template.placeholders() != first.template.placeholders()
    {
        let origin = section.place_of("template");
        let message = format!(
            "\"{template}\" has other placeholders than \"{}\" of the same rule",
            first.template
        );
        let remedy = format!(
            "Use {{{}}} in each template.",
            first.template.placeholders().join("}, {")
        );
        section.error_at("template", &origin, message, remedy);
    }
    section.finish();
    Some(IdentityMatch {
        backend: backend?,
        field: field?,
        template: template?,
    })
}

fn kind_of(name: &BackendName, backends: &[BackendConfig]) -> Option<BackendKind> {
    if name.as_str() == RESERVED_NAME {
        return Some(BackendKind::Builtin);
    }
    let found = backends.iter().find(|backend| backend.name == *name)?;
    Some(found.system.kind())
}

fn name() -> value_parsers::Rule<'static, String> {
    let expected = format!("a name of 1 to {NAME_CHARS_MAX} printable characters, such as \"workers\"");
    value_parsers::checked(expected, |text| match text.chars().count() {
        0 => Err("is empty".to_owned()),
        1..=NAME_CHARS_MAX if !text.chars().any(char::is_control) => Ok(()),
        1..=NAME_CHARS_MAX => Err("has a control character".to_owned()),
        _ => Err("is too long".to_owned()),
    })
}

fn backend_name() -> value_parsers::Rule<'static, String> {
    value_parsers::checked("the name of a [[backend]], or \"builtin\"", |text| {
        BackendName::parse(text)
            .map(|_| ())
            .map_err(|_| "is not the name of a backend".to_owned())
    })
}

fn template() -> value_parsers::Rule<'static, String> {
    value_parsers::checked("a template such as \"{service}-{pod}\"", |text| {
        IdentityTemplate::parse(text)
            .map(|_| ())
            .map_err(|error| error.to_string())
    })
}
