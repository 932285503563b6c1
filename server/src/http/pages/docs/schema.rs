//! JSON schemas of the description as rows for display: dotted names, types with their limits, what they mean.

use app::page_data::docs::ParameterRow;
use serde_json::Value;

/// Fields within fields within fields; below that the type's name must do.
const DEPTH_MAX: usize = 3;

/// The schema behind `$ref`, or the schema itself.
fn resolved<'a>(all: &'a Value, schema: &'a Value) -> &'a Value {
    let named = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    named.map_or(schema, |name| &all[name])
}

/// The schema of a member, without null as an alternative.
fn meant<'a>(all: &'a Value, schema: &'a Value) -> &'a Value {
    let choices = choices(schema);
    match choices.as_slice() {
        [one] => resolved(all, one),
        _ => resolved(all, schema),
    }
}

fn choices(schema: &Value) -> Vec<&Value> {
    let of = |word: &str| schema[word].as_array();
    let listed = of("oneOf").or_else(|| of("anyOf")).or_else(|| of("allOf"));
    let listed = listed.into_iter().flatten();
    listed.filter(|one| one["type"] != "null").collect()
}

/// Every field of a schema, each followed by the fields inside it.
pub(super) fn rows(all: &Value, schema: &Value) -> Vec<ParameterRow> {
    let mut rows = Vec::new();
    walk(all, schema, "", 0, &mut rows);
    rows
}

fn walk(all: &Value, schema: &Value, before: &str, depth: usize, rows: &mut Vec<ParameterRow>) {
    let schema = meant(all, schema);
    if schema["type"] == "array" {
        return walk(all, &schema["items"], before, depth, rows);
    }
    // Either of several shapes: the fields of all of them.
    for one in choices(schema) {
        walk(all, one, before, depth, rows);
    }
    let must: Vec<&str> = list(&schema["required"]);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_list = meant(all, field)["type"] == "array" || has_type(field, "array");
        let name = format!("{before}{name}");
        if rows.iter().any(|row| row.name == name) {
            continue;
        }
        rows.push(ParameterRow {
            location: String::new(),
            kind: kind(all, field),
            is_required: must.contains(&name.rsplit('.').next().unwrap_or(&name)),
            text: words(all, field),
            name: name.clone(),
        });
        if depth + 1 < DEPTH_MAX {
            let ending = if is_list { "[]." } else { "." };
            let inner = if is_list {
                &meant(all, field)["items"]
            } else {
                field
            };
            walk(all, inner, &format!("{name}{ending}"), depth + 1, rows);
        }
    }
}

fn list(value: &Value) -> Vec<&str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn has_type(schema: &Value, word: &str) -> bool {
    schema["type"] == word || list(&schema["type"]).contains(&word)
}

/// `text`, `whole number, at least 0, or null`, `list of text`.
pub(super) fn kind(all: &Value, schema: &Value) -> String {
    let meant = meant(all, schema);
    let is_optional = has_type(meant, "null")
        || schema["oneOf"]
            .as_array()
            .is_some_and(|of| of.iter().any(|one| one["type"] == "null"));
    let word = if has_type(meant, "array") {
        format!("list of {}", kind(all, &meant["items"]))
    } else if has_type(meant, "string") {
        text(meant)
    } else if has_type(meant, "integer") {
        "whole number".to_owned()
    } else if has_type(meant, "number") {
        "number".to_owned()
    } else if has_type(meant, "boolean") {
        "true or false".to_owned()
    } else if meant["additionalProperties"].is_object() {
        format!("object of {} by name", kind(all, &meant["additionalProperties"]))
    } else if has_type(meant, "object") || !choices(meant).is_empty() {
        "object".to_owned()
    } else {
        "anything".to_owned()
    };
    let mut out = word;
    for limit in limits(meant) {
        out.push_str(", ");
        out.push_str(&limit);
    }
    if is_optional {
        out.push_str(" or null");
    }
    out
}

fn text(schema: &Value) -> String {
    let words = list(&schema["enum"]);
    if !words.is_empty() {
        return words
            .iter()
            .map(|word| format!("`{word}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match schema["format"].as_str() {
        Some("date-time") => "time, RFC 3339".to_owned(),
        _ => "text".to_owned(),
    }
}

fn limits(schema: &Value) -> Vec<String> {
    let said = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters, at least:"),
        ("maxLength", "characters, at most:"),
        ("minItems", "items, at least:"),
        ("maxItems", "items, at most:"),
        ("pattern", "like"),
        ("default", "default:"),
    ];
    let found = said.into_iter().filter(|(key, _)| !schema[*key].is_null());
    found
        .map(|(key, words)| format!("{words} {}", schema[key]))
        .collect()
}

fn words(all: &Value, schema: &Value) -> String {
    let own = schema["description"].as_str();
    let of_type = || meant(all, schema)["description"].as_str();
    own.or_else(of_type).unwrap_or_default().replace('\n', " ")
}
