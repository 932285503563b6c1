//! Redaction for readers with a limited scope: names of casualties outside their scope.

use domain::audit::Readable;
use domain::force_release::{BlastRadius, CasualtyKind};
use serde_json::Value;

use super::append::AuditRecord;

/// `before` and `after` of an entry, redacted; unchanged for readers without a limit.
pub(super) fn to(readable: &Readable, row: &AuditRecord) -> (Option<String>, Option<String>) {
    if readable.places().is_none() {
        return (row.before.clone(), row.after.clone());
    }
    let backend = row.backend.as_deref();
    let cut = |text: &Option<String>| {
        let mut value: Value = serde_json::from_str(text.as_deref()?).ok()?;
        withhold(&mut value, |name| readable.covers(backend, Some(name)));
        Some(value.to_string())
    };
    (cut(&row.before), cut(&row.after))
}

fn withhold(value: &mut Value, may_see: impl Fn(&str) -> bool) {
    if let Some(Value::Array(casualties)) = value.get_mut("dies") {
        let all = casualties.len();
        casualties.retain(|casualty| {
            let Some((kind, what)) = casualty.as_str().and_then(|text| text.split_once(": ")) else {
                return false;
            };
            let is_name = [CasualtyKind::Key, CasualtyKind::Lock].map(CasualtyKind::as_str);
            !is_name.contains(&kind) || may_see(what)
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
    if let Some(Value::String(why)) = value.get_mut("why")
        && why.starts_with(BlastRadius::WIDER)
    {
        why.truncate(BlastRadius::WIDER.len());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn foreign_names_are_counted_and_not_shown() {
        // Own keys and foreign ones, a session without a name, a refusal that contains one.
        let mut before = json!({
            "ownerId": "w", "dies": ["key: tenant_1:a", "key: tenant_2:b", "lock: x", "session: app, idle"]
        });
        let is_own = |name: &str| name.starts_with("tenant_1:");
        withhold(&mut before, is_own);
        let redacted = json!([
            "key: tenant_1:a",
            "session: app, idle",
            "2 more, under names that you may not read"
        ]);
        assert_eq!(before["dies"], redacted);
        let mut after = json!({"state": "refused", "why": format!("{}: tenant_2:b", BlastRadius::WIDER)});
        withhold(&mut after, is_own);
        assert_eq!(after["why"], BlastRadius::WIDER);
        let mut intent = json!({"protectionReason": {"because": "casualty", "resource": "tenant_2:b"}});
        withhold(&mut intent, is_own);
        assert_eq!(
            intent["protectionReason"],
            json!({"because": "casualty", "resource": null})
        );
        let mut other = json!({"why": "no answer within 60 s"});
        withhold(&mut other, is_own);
        assert_eq!(other["why"], "no answer within 60 s");
    }
}
