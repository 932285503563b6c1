//! Terminal output of a forced unlock: text from the server is escaped, and every casualty is listed.

use std::fmt::Write as _;

use domain::escape::visible;
use domain::format;
use serde_json::Value;

use super::text;

/// The reviewed holding and its casualties, as lines.
pub(super) fn holding_text(unlock: &Value) -> String {
    let held = &unlock["observed"];
    let mut out = String::new();
    let mut line = |label: &str, value: String| {
        let _ = writeln!(out, "{label:<10} {}", visible(&value));
    };
    line(
        "lock",
        format!(
            "{} on {} ({})",
            text(unlock, "resource"),
            text(unlock, "backend"),
            text(unlock, "source")
        ),
    );
    line(
        "held by",
        known(held, "ownerId", |value| value.as_str().map(str::to_owned)),
    );
    line(
        "held for",
        known(held, "heldMs", |value| value.as_i64().map(format::duration)),
    );
    line(
        "token",
        known(held, "fencingToken", |value| value.as_str().map(str::to_owned)),
    );
    line(
        "time left",
        known(held, "remainingMs", |value| value.as_i64().map(format::duration)),
    );
    line(
        "renewing",
        known(held, "renewing", |value| {
            value
                .as_bool()
                .map(|yes| if yes { "yes" } else { "no longer" }.to_owned())
        }),
    );
    let next = unlock["next"].as_str().map(str::to_owned);
    let waiters = held["waiters"].as_array().map_or(0, Vec::len) as u64;
    line(
        "waiting",
        match (next, waiters) {
            (Some(next), count) => format!("{}; {next} gets it next", format::count(count)),
            (None, count) => format::count(count),
        },
    );
    line("protection", protection(unlock));
    let casualties = unlock["blastRadius"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if casualties.is_empty() {
        line("also ends", "nothing".to_owned());
    }
    for casualty in casualties {
        line(
            "also ends",
            format!("{}: {}", text(casualty, "kind"), text(casualty, "what")),
        );
    }
    let warnings = unlock["warnings"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for warning in warnings {
        line("note", warning.as_str().unwrap_or_default().to_owned());
    }
    line("valid", format!("until {}, once", text(unlock, "expiresAt")));
    out
}

/// A value, or why it is unknown.
fn known(observed: &Value, field: &str, read: impl Fn(&Value) -> Option<String>) -> String {
    let why = |kind: &str| observed[kind][field].as_str().map(str::to_owned);
    read(&observed[field])
        .or_else(|| why("absent").map(|why| format!("none: {why}")))
        .or_else(|| why("unknown").map(|why| format!("unknown: {why}")))
        .unwrap_or_else(|| "unknown".to_owned())
}

pub(super) fn question(unlock: &Value) -> String {
    let name = text(&unlock["confirm"], "type");
    format!(
        "Type {} to release it (Ctrl-C releases nothing): ",
        visible(&name)
    )
}

/// The result, in sentences that state no more than is known.
pub(super) fn outcome(unlock: &Value) -> String {
    let result = &unlock["outcome"];
    let now = match (&result["now"], result["read"].as_bool()) {
        (Value::Object(_), _) => format!(" {} holds it now.", text(&result["now"], "ownerId")),
        (_, Some(true)) => " It is free now.".to_owned(),
        _ => String::new(),
    };
    let why = result["why"]
        .as_str()
        .map(|why| format!(" {}.", why.trim_end_matches('.')))
        .unwrap_or_default();
    let remedy = result["remedy"]
        .as_str()
        .map(|remedy| format!(" {remedy}"))
        .unwrap_or_default();
    let sentence = match unlock["state"].as_str() {
        Some("released") => {
            format!("released: exactly the holder that was shown has lost the lock.{now}{why}")
        }
        Some("already_free") => "it was no longer held; nothing was changed".to_owned(),
        Some("holder_changed") => format!("holder changed: nothing was released.{now}"),
        Some("refused") => format!("refused, the lock was not released:{why}{remedy}"),
        Some(state @ ("cancelled" | "expired")) => format!("{state}: nothing was released.{why}"),
        _ => format!(
            "outcome unknown: it may or may not have been released. Check the lock before any other action.{why}{remedy}"
        ),
    };
    let id = text(unlock, "unlockId");
    let record = if id.is_empty() {
        String::new()
    } else {
        format!(" (record: unlock {id})")
    };
    format!("{}\n", visible(&format!("{sentence}{record}")))
}

/// A refusal with its remedy.
pub(super) fn problem(body: &Value) -> String {
    let detail = body["detail"].as_str().unwrap_or("the server gave no reason");
    let remedy = body["remedy"]
        .as_str()
        .map(|remedy| format!(". {remedy}"))
        .unwrap_or_default();
    let now = body["now"]["ownerId"]
        .as_str()
        .map(|now| format!("; {now} holds it now"))
        .unwrap_or_default();
    let code = body["code"].as_str().unwrap_or("problem");
    format!("{code}: {detail}{now}{remedy}")
}

/// The protection level with its reason.
fn protection(unlock: &Value) -> String {
    let protection = text(unlock, "protection");
    match unlock["protectionReason"]["sentence"].as_str() {
        Some(why) => format!("{protection}: {why}"),
        None => protection,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unknown_values_are_named_and_no_escapes_are_printed() {
        // An owner with an escape sequence, no token on this backend, an unknown time, a session as casualty.
        let unlock = json!({
            "resource": "lock:\u{1b}[2Ja", "backend": "cache", "source": "key", "protection": "standard",
            "expiresAt": "2026-01-01T00:02:00Z", "warnings": ["it goes on"], "next": null,
            "blastRadius": [{"kind": "session", "what": "pid 7\u{202e}"}],
            "observed": {"ownerId": "w\u{7}", "heldMs": null, "fencingToken": null, "waiters": [],
                "unknown": {"heldMs": "Redis does not tell"}, "absent": {"fencingToken": "Redis issues none"}},
        });
        let shown = holding_text(&unlock);
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown:?}");
        for line in [
            "lock       lock:\\u{1b}[2Ja on cache (key)",
            "held for   unknown: Redis does not tell",
            "token      none: Redis issues none",
            "also ends  session: pid 7\\u{202e}",
        ] {
            assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
        }
    }

    #[test]
    fn an_unknown_outcome_is_neither_success_nor_failure() {
        // A text for each state; only one of them says released.
        for state in [
            "already_free",
            "holder_changed",
            "refused",
            "expired",
            "cancelled",
            "outcome_unknown",
        ] {
            let text = outcome(&json!({"state": state, "outcome": {"read": false}}));
            assert!(!text.starts_with("released"), "{text}");
        }
        // Copies on a minority of the nodes were deleted: the lock is still held, and something was released.
        let partial = json!({"state": "refused", "outcome": {"why": "deleted on 1 of 3 nodes"}});
        let partial = outcome(&partial);
        assert!(
            partial.starts_with("refused, the lock was not released: deleted on 1 of 3 nodes"),
            "{partial}"
        );
        assert!(!partial.contains("nothing was released"), "{partial}");
        let unknown = outcome(&json!({"state": "outcome_unknown", "outcome": {"why": "no answer"}}));
        assert!(unknown.contains("may or may not have been released") && unknown.contains("no answer"));
    }
}
