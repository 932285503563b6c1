//! Redaction for readers of a part of a backend: names of casualties outside their scope, and sentences that could
//! contain such names or addresses.

use domain::audit::Readable;
use domain::force_release::CasualtyKind;
use domain::quorum::node_number;
use domain::unlock::{GENERAL_REMEDY, general_reason};
use serde_json::Value;

use super::append::AuditRecord;

/// `before` and `after` of an entry, redacted; unchanged for readers of the whole backend.
pub(super) fn to(readable: &Readable, row: &AuditRecord) -> (Option<String>, Option<String>) {
    let backend = row.backend.as_deref();
    if readable.covers(backend, None) {
        return (row.before.clone(), row.after.clone());
    }
    let cut = |text: &Option<String>| {
        let mut value: Value = serde_json::from_str(text.as_deref()?).ok()?;
        withhold(&mut value, |name| readable.covers(backend, Some(name)));
        replace_sentences(&mut value, &row.outcome);
        Some(value.to_string())
    };
    (cut(&row.before), cut(&row.after))
}

fn withhold(value: &mut Value, may_see: impl Fn(&str) -> bool) {
    if let Some(Value::Array(casualties)) = value.get_mut("dies") {
        let all = casualties.len();
        casualties.retain_mut(|casualty| {
            let text = casualty.as_str().and_then(|text| text.split_once(": "));
            let Some((kind, what)) = text else {
                return false;
            };
            let Some(kind) = CasualtyKind::parse(kind) else {
                return false;
            };
            let Some(general) = kind.general_text() else {
                return may_see(what);
            };
            *casualty = format!("{}: {general}", kind.as_str()).into();
            true
        });
        if casualties.len() < all {
            let hidden = all - casualties.len();
            casualties.push(format!("{hidden} more, under names that you may not read").into());
        }
    }
    if let Some(name) = value.pointer_mut("/protectionReason/resource")
        && name.as_str().is_some_and(|name| !may_see(name))
    {
        *name = Value::Null;
    }
}

/// Also the addresses and errors of single nodes.
fn replace_sentences(value: &mut Value, outcome: &str) {
    if let Some(why) = value.get_mut("why") {
        *why = general_reason(outcome, why.as_str().unwrap_or_default()).into();
    }
    if let Some(remedy) = value.get_mut("remedy") {
        *remedy = GENERAL_REMEDY.into();
    }
    if let Some(Value::Array(nodes)) = value.get_mut("nodes") {
        for (index, node) in nodes.iter_mut().enumerate() {
            if let Some(name) = node.get_mut("node") {
                *name = node_number(index).into();
            }
            if let Some(why) = node.get_mut("why") {
                *why = Value::Null;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::force_release::BlastRadius;
    use serde_json::json;

    use super::*;

    #[test]
    fn foreign_names_are_counted_and_not_shown() {
        // Own keys and foreign ones, a session whose description could contain a name, a protected casualty.
        let mut before = json!({
            "ownerId": "w", "dies": ["key: tenant_1:a", "key: tenant_2:b", "lock: x", "session: app, idle"]
        });
        let is_own = |name: &str| name.starts_with("tenant_1:");
        withhold(&mut before, is_own);
        let redacted = json!([
            "key: tenant_1:a",
            "session: the session that holds it",
            "2 more, under names that you may not read"
        ]);
        assert_eq!(before["dies"], redacted);
        let mut intent = json!({"protectionReason": {"because": "casualty", "resource": "tenant_2:b"}});
        withhold(&mut intent, is_own);
        assert_eq!(
            intent["protectionReason"],
            json!({"because": "casualty", "resource": null})
        );
    }

    #[test]
    fn sentences_are_replaced_by_general_ones() {
        // A wider blast radius, a refusal that names a lock, an error of a backend with the address of a node.
        let mut wider = json!({"state": "refused", "why": format!("{}: tenant_2:b", BlastRadius::WIDER)});
        replace_sentences(&mut wider, "refused");
        assert_eq!(wider, json!({"state": "refused", "why": BlastRadius::WIDER}));
        let mut step = json!({"why": "it would also release tenant_2:b, which is protected"});
        replace_sentences(&mut step, "needs_approval");
        assert_eq!(
            step,
            json!({"why": "the approval of a second approver is missing"})
        );
        let mut failed = json!({
            "why": "10.0.0.7:6379 does not answer", "remedy": "Start 10.0.0.7.",
            "nodes": [{"node": "10.0.0.7:6379", "result": "unreachable", "why": "10.0.0.7:6379 does not answer"}]
        });
        replace_sentences(&mut failed, "refused");
        assert_eq!(
            failed,
            json!({
                "why": "it was not released", "remedy": GENERAL_REMEDY,
                "nodes": [{"node": "node 1", "result": "unreachable", "why": null}]
            })
        );
    }
}
