//! JSON schemas of the description as rows for display: dotted names, types with their limits, descriptions.

use app::pages::docs::ParameterRow;
use serde_json::Value;

/// Levels of nested fields that get rows; deeper objects are shown by their type only.
const DEPTH_MAX: usize = 3;

/// The schema behind `$ref`, or the schema itself.
fn resolved<'a>(all: &'a Value, schema: &'a Value) -> &'a Value {
    let ref_name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    ref_name.map_or(schema, |name| &all[name])
}

/// The schema of a member, without null as an alternative.
fn non_null_schema<'a>(all: &'a Value, schema: &'a Value) -> &'a Value {
    let choices = choices(schema);
    match choices.as_slice() {
        [choice] => resolved(all, choice),
        _ => resolved(all, schema),
    }
}

fn choices(schema: &Value) -> Vec<&Value> {
    let array = |keyword: &str| schema[keyword].as_array();
    let alternatives = array("oneOf")
        .or_else(|| array("anyOf"))
        .or_else(|| array("allOf"));
    let alternatives = alternatives.into_iter().flatten();
    alternatives
        .filter(|alternative| alternative["type"] != "null")
        .collect()
}

/// Every field of a schema, each followed by the fields inside it.
pub(super) fn rows(all: &Value, schema: &Value) -> Vec<ParameterRow> {
    let mut rows = Vec::new();
    walk(all, schema, "", 0, &mut rows);
    rows
}

fn walk(all: &Value, schema: &Value, before: &str, depth: usize, rows: &mut Vec<ParameterRow>) {
    let schema = non_null_schema(all, schema);
    if schema["type"] == "array" {
        return walk(all, &schema["items"], before, depth, rows);
    }
    // A choice of several schemas: the fields of all of them.
    for choice in choices(schema) {
        walk(all, choice, before, depth, rows);
    }
    let required: Vec<&str> = list(&schema["required"]);
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_list = non_null_schema(all, field)["type"] == "array" || has_type(field, "array");
        let name = format!("{before}{name}");
        if rows.iter().any(|row| row.name == name) {
            continue;
        }
        rows.push(ParameterRow {
            location: String::new(),
            kind: kind(all, field),
            is_required: required.contains(&name.rsplit('.').next().unwrap_or(&name)),
            text: description(all, field),
            name: name.clone(),
        });
        if depth + 1 < DEPTH_MAX {
            let ending = if is_list { "[]." } else { "." };
            let inner = if is_list {
                &non_null_schema(all, field)["items"]
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

fn has_type(schema: &Value, type_name: &str) -> bool {
    schema["type"] == type_name || list(&schema["type"]).contains(&type_name)
}

/// `text`, `whole number, at least 0, or null`, `list of text`.
pub(super) fn kind(all: &Value, schema: &Value) -> String {
    let target = non_null_schema(all, schema);
    let is_optional = has_type(target, "null")
        || schema["oneOf"].as_array().is_some_and(|alternatives| {
            alternatives
                .iter()
                .any(|alternative| alternative["type"] == "null")
        });
    let type_text = if has_type(target, "array") {
        format!("list of {}", kind(all, &target["items"]))
    } else if has_type(target, "string") {
        text(target)
    } else if has_type(target, "integer") {
        "whole number".to_owned()
    } else if has_type(target, "number") {
        "number".to_owned()
    } else if has_type(target, "boolean") {
        "true or false".to_owned()
    } else if target["additionalProperties"].is_object() {
        format!("object of {} by name", kind(all, &target["additionalProperties"]))
    } else if has_type(target, "object") || !choices(target).is_empty() {
        "object".to_owned()
    } else {
        "anything".to_owned()
    };
    let mut out = type_text;
    for limit in limits(target) {
        out.push_str(", ");
        out.push_str(&limit);
    }
    if is_optional {
        out.push_str(" or null");
    }
    out
}

fn text(schema: &Value) -> String {
    let values = list(&schema["enum"]);
    if !values.is_empty() {
        return values
            .iter()
            .map(|value| format!("`{value}`"))
            .collect::<Vec<_>>()
            .join(", ");
    }
    match schema["format"].as_str() {
        Some("date-time") => "time, RFC 3339".to_owned(),
        _ => "text".to_owned(),
    }
}

fn limits(schema: &Value) -> Vec<String> {
    let labels = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "characters, at least:"),
        ("maxLength", "characters, at most:"),
        ("minItems", "items, at least:"),
        ("maxItems", "items, at most:"),
        ("pattern", "like"),
        ("default", "default:"),
    ];
    let found = labels.into_iter().filter(|(key, _)| !schema[*key].is_null());
    found
        .map(|(key, label)| format!("{label} {}", schema[key]))
        .collect()
}

fn description(all: &Value, schema: &Value) -> String {
    let own_description = schema["description"].as_str();
    let type_description = || non_null_schema(all, schema)["description"].as_str();
    own_description
        .or_else(type_description)
        .unwrap_or_default()
        .replace('\n', " ")
}
