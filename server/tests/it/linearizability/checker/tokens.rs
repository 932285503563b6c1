//! I1: no token twice, and later grants have higher ones: in the order of answers, and in the order of the store.

use std::collections::HashMap;

use super::super::history::{History, HistoryRow};
use super::{Grant, grants};

pub(super) fn check(history: &History) -> Vec<String> {
    let mut by_resource: HashMap<&str, Vec<Grant<'_>>> = HashMap::new();
    for grant in grants(history) {
        by_resource.entry(grant.resource).or_default().push(grant);
    }
    let mut found: Vec<String> = by_resource
        .into_iter()
        .flat_map(|(name, all)| answers(name, all))
        .collect();
    let mut rows: HashMap<&str, Vec<&HistoryRow>> = HashMap::new();
    for row in &history.rows {
        rows.entry(&row.resource).or_default().push(row);
    }
    found.extend(rows.into_iter().flat_map(|(name, all)| stored(name, all)));
    found
}

/// A grant answered before another was requested came first.
fn answers(resource: &str, mut all: Vec<Grant<'_>>) -> Vec<String> {
    let mut found = Vec::new();
    all.sort_by_key(|grant| grant.token);
    for pair in all.windows(2) {
        if pair[0].token == pair[1].token {
            found.push(format!("{resource}: token {} was granted twice", pair[0].token));
        }
    }
    // From the highest token down, the earliest answer so far: no lower one may begin after it.
    let mut first_answer = i64::MAX;
    let mut of = 0;
    for grant in all.iter().rev() {
        if grant.call.begin > first_answer {
            found.push(format!(
                "{resource}: token {} was granted after {of}",
                grant.token
            ));
        }
        if let Some(end) = grant.call.end.filter(|end| *end < first_answer) {
            (first_answer, of) = (end, grant.token);
        }
    }
    found
}

fn stored(resource: &str, mut all: Vec<&HistoryRow>) -> Vec<String> {
    all.sort_by_key(|row| (row.token, row.acquired_ms));
    let wrong = all.windows(2).filter_map(|pair| {
        let [one, two] = pair else { return None };
        if one.token == two.token {
            return Some(format!("{resource}: the store holds token {} twice", one.token));
        }
        (one.acquired_ms > two.acquired_ms)
            .then(|| format!("{resource}: the store granted {} after {}", one.token, two.token))
    });
    wrong.collect()
}
