//! I4: no update is lost where tokens are compared. An update is lost when a write is accepted that was made from an
//! older version than the one it replaces.

use std::collections::HashMap;

use super::super::history::{EventKind, History};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = lost(history, true);
    let mut highest: HashMap<&str, u64> = HashMap::new();
    for access in history.accesses.iter().filter(|access| access.fenced) {
        let highest = highest.entry(&access.resource).or_insert(0);
        if access.accepted && access.token < *highest {
            found.push(format!(
                "{}: {} was accepted after {highest}",
                access.resource, access.token
            ));
        }
        if access.accepted {
            *highest = access.token.max(*highest);
        }
    }
    found
}

pub(super) fn lost(history: &History, fenced: bool) -> Vec<String> {
    let mut versions: HashMap<&str, u64> = HashMap::new();
    let mut found = Vec::new();
    for access in history
        .accesses
        .iter()
        .filter(|access| access.fenced == fenced && access.accepted)
    {
        let EventKind::Write { base } = access.kind else {
            continue;
        };
        let version = versions.entry(&access.resource).or_insert(0);
        if base != *version {
            found.push(format!(
                "{}: token {} wrote version {} over {version}",
                access.resource,
                access.token,
                base + 1
            ));
        }
        *version = base + 1;
    }
    found
}
