//! A curl example of each operation. Tests run it unchanged, so its inputs are named shell variables.

use serde_json::Value;

/// The command; `is_open` asks without a token.
pub(super) fn curl(
    method: &str,
    path: &str,
    example: Option<&Value>,
    is_open: bool,
    is_stream: bool,
) -> String {
    let mut out = String::from(if is_stream {
        "curl -sSN --fail-with-body"
    } else {
        "curl -sS --fail-with-body"
    });
    if method != "GET" {
        out.push_str(&format!(" -X {method}"));
    }
    out.push_str(&format!(" \"$LEASEHOLD_SERVER{}\"", filled(path)));
    if !is_open {
        out.push_str(" \\\n  -H \"Authorization: Bearer $LEASEHOLD_TOKEN\"");
    }
    if let Some(example) = example {
        out.push_str(" \\\n  -H 'Content-Type: application/json'");
        out.push_str(&format!(" \\\n  -d '{}'", quoted(&example.to_string())));
    }
    out
}

/// For single quotes; texts that name a variable are left to the shell.
fn quoted(json: &str) -> String {
    let escaped = json.replace('\'', "'\\''");
    let mut parts = escaped.split("\"$");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('"').unwrap_or((part, ""));
        out.push_str(&format!("\"'\"${name}\"'\"{rest}"));
    }
    out
}

/// `/v1/users/{id}` → `/v1/users/$USER_ID`
fn filled(path: &str) -> String {
    let mut before = "";
    let mut out = Vec::new();
    for part in path.split('/') {
        match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
            Some(name) => out.push(format!("${}", variable(before, name))),
            None => out.push(part.to_owned()),
        }
        before = part;
    }
    out.join("/")
}

fn variable(collection: &str, name: &str) -> String {
    let one = match collection {
        "protected-prefixes" => "protected_prefix",
        other => other.strip_suffix('s').unwrap_or(other),
    };
    match name {
        "id" => format!("{one}_id").to_uppercase(),
        "name" => one.to_uppercase(),
        "leaseId" => "LEASE_ID".to_owned(),
        "unlockId" => "UNLOCK_ID".to_owned(),
        other => other.to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        // A quote in a text, a variable among words, a path with an id.
        let example = json!({"a": "it's", "b": "$GENERATION"});
        let command = curl("PUT", "/v1/users/{id}/grants", Some(&example), false, false);
        assert!(
            command.contains(r#""$LEASEHOLD_SERVER/v1/users/$USER_ID/grants""#),
            "{command}"
        );
        assert!(command.contains(r#"it'\''s"#), "{command}");
        assert!(command.contains(r#""b":"'"$GENERATION"'""#), "{command}");
    }
}
