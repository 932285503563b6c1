//! I5: a dead client holds no lock once its bound has passed, and no lease lives longer than its cap, or than its TTL
//! after its last renewal, each with the store's margin.

use std::collections::HashMap;

use super::super::history::{History, OperationKind, RecordedAnswer};

pub(super) fn check(history: &History) -> Vec<String> {
    let clients: HashMap<&str, u32> = history
        .calls
        .iter()
        .filter_map(|call| match &call.what {
            OperationKind::Acquire { owner, .. } => Some((owner.as_str(), call.client)),
            _ => None,
        })
        .collect();
    let mut found = Vec::new();
    for death in &history.deaths {
        let free_from = death.at + (death.bound_ms + history.margin_ms) * 1_000;
        for call in history.calls.iter().filter(|call| call.begin > free_from) {
            let holder = match &call.answer {
                RecordedAnswer::Refused { owner, .. } => owner,
                RecordedAnswer::Holder {
                    holder: Some((_, owner)),
                    ..
                } => owner,
                _ => continue,
            };
            if clients.get(holder.as_str()) == Some(&death.client) {
                let late = (call.begin - death.at) / 1_000;
                found.push(format!(
                    "{holder} holds {:?} {late} ms after its client's death",
                    call.what
                ));
            }
        }
    }
    for row in &history.rows {
        let until = row.ended.as_ref().map_or(row.expires_ms, |(at, _)| *at);
        let (life, since_renewal) = (until - row.acquired_ms, until - row.renewed_ms);
        if life > history.lifetime_ms_max + history.margin_ms {
            found.push(format!(
                "{}: {} lived {life} ms, more than its cap",
                row.resource, row.token
            ));
        }
        if since_renewal > row.ttl_ms + history.margin_ms {
            found.push(format!(
                "{}: {} lived {since_renewal} ms without a renewal",
                row.resource, row.token
            ));
        }
    }
    found
}
