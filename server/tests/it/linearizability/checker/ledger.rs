//! I6: each answered grant is in the store once, as it was answered; the store holds no grant that was not requested;
//! each confirmed rejection is recorded once, and one whose answer was lost at most once.

use std::collections::HashMap;

use super::super::history::{History, HistoryRow, OperationKind, RecordedAnswer};
use super::grants;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut rows: HashMap<&str, Vec<&HistoryRow>> = HashMap::new();
    for row in &history.rows {
        rows.entry(&row.owner).or_default().push(row);
    }
    for grant in grants(history) {
        let kept = rows.get(grant.owner).map_or(&[][..], Vec::as_slice);
        let same = |row: &&&HistoryRow| {
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
    let answers: HashMap<&str, &RecordedAnswer> = history
        .calls
        .iter()
        .filter_map(|call| match &call.what {
            OperationKind::Acquire { owner, .. } => Some((owner.as_str(), &call.answer)),
            _ => None,
        })
        .collect();
    for (owner, kept) in &rows {
        match answers.get(owner) {
            None => found.push(format!("the store holds a lease of {owner}, who never answers")),
            // Granted at the end of its wait, and released before the refusal was sent: the chain bounds when.
            Some(RecordedAnswer::Refused { .. }) if kept.iter().all(|row| given_back(row)) => {}
            Some(RecordedAnswer::Refused { .. }) => {
                found.push(format!("{owner} was refused and holds a lease"))
            }
            Some(_) if kept.len() > 1 => {
                found.push(format!("{owner} answers once and has {} leases", kept.len()))
            }
            Some(_) => {}
        }
    }
    found.extend(reports(history));
    found
}

/// Or it had run out by then.
fn given_back(row: &HistoryRow) -> bool {
    row.ended.is_some()
}

fn reports(history: &History) -> Vec<String> {
    let mut kept: HashMap<&str, usize> = HashMap::new();
    for source in &history.ledger {
        *kept.entry(source).or_insert(0) += 1;
    }
    let mut found = Vec::new();
    for call in &history.calls {
        let OperationKind::Report { source } = &call.what else {
            continue;
        };
        let count = kept.remove(source.as_str()).unwrap_or(0);
        let right = match call.answer {
            RecordedAnswer::Reported => count == 1,
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
            .map(|source| format!("the ledger holds {source}, which no client reported")),
    );
    found
}
