//! I2: in commit order, which is the order of tokens, a lease has ended before the next begins.

use std::collections::HashMap;

use super::super::history::{History, HistoryRow};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut rows: HashMap<&str, Vec<&HistoryRow>> = HashMap::new();
    for row in &history.rows {
        rows.entry(&row.resource).or_default().push(row);
    }
    let mut found = Vec::new();
    for (resource, mut all) in rows {
        all.sort_by_key(|row| row.token);
        for pair in all.windows(2) {
            let (one, next) = (pair[0], pair[1]);
            match &one.ended {
                None => found.push(format!(
                    "{resource}: {} has no ending, but {} came after it",
                    one.token, next.token
                )),
                Some((at, how)) if *at > next.acquired_ms => found.push(format!(
                    "{resource}: {} was {how} {} ms after {} was granted",
                    one.token,
                    at - next.acquired_ms,
                    next.token
                )),
                Some(_) => {}
            }
        }
        found.extend(all.iter().filter_map(|row| ended_early(row)));
    }
    found
}

/// An expiry is at the moment that was promised with the last renewal, and not before.
fn ended_early(row: &HistoryRow) -> Option<String> {
    let (at, how) = row.ended.as_ref()?;
    (how == "expired" && *at < row.expires_ms).then(|| {
        format!(
            "{}: {} expired {} ms before its time",
            row.resource,
            row.token,
            row.expires_ms - at
        )
    })
}
