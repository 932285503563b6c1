//! I6: each grant that was answered is in the store once, as it was answered; the store holds no grant that nobody asked
//! for; each rejection that was confirmed is in the ledger once, and one whose answer was lost at most once.

use std::collections::HashMap;

use super::super::history::{Answer, History, Row, What};
use super::grants;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut rows: HashMap<&str, Vec<&Row>> = HashMap::new();
    for row in &history.rows {
        rows.entry(&row.owner).or_default().push(row);
    }
    for grant in grants(history) {
        let kept = rows.get(grant.owner).map_or(&[][..], Vec::as_slice);
        let same = |row: &&&Row| {
            row.lease == grant.lease && row.token == grant.token && row.resource == grant.resource
        };
        if kept.len() != 1 || kept.iter().filter(same).count() != 1 {
            found.push(format!(
                "{}: token {} was answered to {}, and the store holds {} leases of it",
                grant.resource,
                grant.token,
                grant.owner,
                kept.len()
            ));
        }
    }
    let asked: HashMap<&str, &Answer> = history
        .calls
        .iter()
        .filter_map(|call| match &call.what {
            What::Acquire { owner, .. } => Some((owner.as_str(), &call.answer)),
            _ => None,
        })
        .collect();
    for (owner, kept) in &rows {
        match asked.get(owner) {
            None => found.push(format!("the store holds a lease of {owner}, who never asked")),
            // Granted when its patience had ended, and given back before it was told: the chain bounds when.
            Some(Answer::Refused { .. }) if kept.iter().all(|row| given_back(row)) => {}
            Some(Answer::Refused { .. }) => found.push(format!("{owner} was refused and holds a lease")),
            Some(_) if kept.len() > 1 => {
                found.push(format!("{owner} asked once and has {} leases", kept.len()))
            }
            Some(_) => {}
        }
    }
    found.extend(reports(history));
    found
}

/// Or it had run out by then.
fn given_back(row: &Row) -> bool {
    row.ended.is_some()
}

fn reports(history: &History) -> Vec<String> {
    let mut kept: HashMap<&str, usize> = HashMap::new();
    for source in &history.ledger {
        *kept.entry(source).or_insert(0) += 1;
    }
    let mut found = Vec::new();
    for call in &history.calls {
        let What::Report { source } = &call.what else {
            continue;
        };
        let count = kept.remove(source.as_str()).unwrap_or(0);
        let right = match call.answer {
            Answer::Reported => count == 1,
            _ => count <= 1,
        };
        if !right {
            found.push(format!(
                "the rejection {source}, answered {:?}, is in the ledger {count} times",
                call.answer
            ));
        }
    }
    found.extend(
        kept.keys()
            .map(|source| format!("the ledger holds {source}, which nobody reported")),
    );
    found
}
