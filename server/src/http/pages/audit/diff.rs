//! Field values before and after a change, side by side.

use std::collections::BTreeMap;

use app::pages::audit::data::{ChangeMark, FieldChange};
use domain::format;
use serde_json::Value;

/// Levels of nesting shown as separate fields; deeper values are shown as JSON.
const DEPTH_MAX: usize = 4;
/// Limit of the fields of one entry: the grants of a user with many roles are truncated.
const FIELDS_MAX: usize = 200;

/// Both sides are JSON as the record has it.
pub(super) fn changes(before: Option<&str>, after: Option<&str>) -> Vec<FieldChange> {
    let mut sides: BTreeMap<String, [Option<String>; 2]> = BTreeMap::new();
    let mut order = Vec::new();
    for (side, text) in [before, after].into_iter().enumerate() {
        let Some(text) = text else { continue };
        for (field, value) in flat(text) {
            let known = sides.entry(field.clone()).or_insert_with(|| {
                order.push(field);
                [None, None]
            });
            known[side] = Some(value);
        }
    }
    let rows = order.into_iter().take(FIELDS_MAX).filter_map(|field| {
        let [before, after] = sides.remove(&field)?;
        let mark = match (&before, &after) {
            (Some(before), Some(after)) if before == after => ChangeMark::Same,
            (Some(_), Some(_)) => ChangeMark::Changed,
            _ => ChangeMark::OneSided,
        };
        Some(FieldChange {
            field,
            before,
            after,
            mark,
        })
    });
    rows.collect()
}

fn flat(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(fields)) => {
            for (name, value) in fields {
                // The present holder is compared with the reviewed holder.
                match (name.as_str(), &value) {
                    ("now", Value::Object(holding)) => {
                        for (name, value) in holding {
                            push(&mut out, name, value, 1);
                        }
                    }
                    ("now", Value::Null) => out.push(("ownerId".to_owned(), "no holder".to_owned())),
                    _ => push(&mut out, &name, &value, 0),
                }
            }
        }
        Ok(value) => push(&mut out, "value", &value, 0),
        // Not written by this server: shown unchanged.
        Err(_) => out.push(("value".to_owned(), text.to_owned())),
    }
    out
}

fn push(out: &mut Vec<(String, String)>, name: &str, value: &Value, depth: usize) {
    match value {
        Value::Object(fields) if depth < DEPTH_MAX && !fields.is_empty() => {
            for (inner, value) in fields {
                push(out, &format!("{name}.{inner}"), value, depth + 1);
            }
        }
        Value::Array(items) if depth < DEPTH_MAX && items.iter().any(Value::is_object) => {
            for (place, value) in items.iter().enumerate() {
                push(out, &format!("{name} {}", place + 1), value, depth + 1);
            }
        }
        Value::Array(items) => {
            let texts: Vec<String> = items.iter().map(|item| text_of(name, item)).collect();
            let text = if texts.is_empty() {
                "none".to_owned()
            } else {
                texts.join(", ")
            };
            out.push((name.to_owned(), text));
        }
        _ => out.push((name.to_owned(), text_of(name, value))),
    }
}

fn text_of(name: &str, value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_i64() {
            Some(ms) if name.ends_with("Ms") => format::duration(ms),
            _ => number.to_string(),
        },
        Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: Option<&str>, after: Option<&str>) -> Vec<(String, String, String, ChangeMark)> {
        let text = |side: Option<String>| side.unwrap_or_else(|| "-".to_owned());
        let all = changes(before, after).into_iter();
        all.map(|it| (it.field, text(it.before), text(it.after), it.mark))
            .collect()
    }

    fn row(field: &str, before: &str, after: &str, mark: ChangeMark) -> (String, String, String, ChangeMark) {
        (field.to_owned(), before.to_owned(), after.to_owned(), mark)
    }

    #[test]
    fn a_diff_compares_the_holders_before_and_after() {
        // Another holder, then no holder; a field of one side appears only on that side.
        let before = r#"{"ownerId":"w-1","fencingToken":"7","heldMs":61000,"waiters":[]}"#;
        let after = r#"{"now":{"ownerId":"w-2","fencingToken":"7"},"state":"holder_changed"}"#;
        let rows = diff(Some(before), Some(after));
        assert!(
            rows.contains(&row("ownerId", "w-1", "w-2", ChangeMark::Changed)),
            "{rows:?}"
        );
        assert!(rows.contains(&row("fencingToken", "7", "7", ChangeMark::Same)));
        assert!(rows.contains(&row("heldMs", "1 m 01 s", "-", ChangeMark::OneSided)));
        assert!(rows.contains(&row("waiters", "none", "-", ChangeMark::OneSided)));
        assert!(rows.contains(&row("state", "-", "holder_changed", ChangeMark::OneSided)));
        let free = diff(Some(before), Some(r#"{"now":null}"#));
        assert!(free.contains(&row("ownerId", "w-1", "no holder", ChangeMark::Changed)));
    }

    #[test]
    fn a_diff_splits_grants_and_keeps_values_that_are_no_json() {
        // Two grants and one; foreign text; an empty value; unlimited nesting.
        let before = r#"{"grants":[{"role":"viewer","prefix":null},{"role":"admin"}]}"#;
        let rows = diff(
            Some(before),
            Some(r#"{"grants":[{"role":"operator","prefix":null}]}"#),
        );
        assert!(
            rows.contains(&row("grants 1.role", "viewer", "operator", ChangeMark::Changed)),
            "{rows:?}"
        );
        assert!(rows.contains(&row("grants 2.role", "admin", "-", ChangeMark::OneSided)));
        assert_eq!(
            diff(Some("{oops"), None),
            [row("value", "{oops", "-", ChangeMark::OneSided)]
        );
        assert!(diff(None, None).is_empty());
        let deep = "{\"a\":".repeat(20) + "1" + &"}".repeat(20);
        assert_eq!(diff(Some(&deep), None).len(), 1);
    }
}
