//! I7: once an answer has reported the end of a lease, no call that begins afterwards is answered with that lease as live: no
//! refusal in its name, no resource with it as the holder, no renewal.
//!
//! I3 says as much for moments that exist; this one names the two answers that disagree, needs no clock and makes no exception
//! for a clock that was moved.

use std::collections::HashMap;

use super::super::history::{Call, History, Micros, OperationKind, RecordedAnswer};

/// The answer of this moment reported that this token, and all before it, had ended.
struct Report<'a> {
    at: Micros,
    token: u64,
    call: &'a Call,
}

pub(super) fn check(history: &History) -> Vec<String> {
    let mut reports: HashMap<&str, Vec<Report<'_>>> = HashMap::new();
    for call in &history.calls {
        if let Some((resource, token)) = reported_end(call)
            && let Some(at) = call.end
        {
            let report = Report { at, token, call };
            reports.entry(resource).or_default().push(report);
        }
    }
    for reports in reports.values_mut() {
        reports.sort_by_key(|report| report.at);
        // Each becomes the report of the highest token until then.
        for place in 1..reports.len() {
            if reports[place - 1].token > reports[place].token {
                let Report { token, call, .. } = reports[place - 1];
                reports[place] = Report {
                    at: reports[place].at,
                    token,
                    call,
                };
            }
        }
    }
    let named = history.calls.iter().filter_map(|call| {
        let (resource, token) = named_live(call)?;
        let reports = reports.get(resource)?;
        let before = reports.partition_point(|report| report.at < call.begin);
        let report = reports[..before].last().filter(|report| report.token >= token)?;
        Some(format!(
            "{resource}: {:?} of {:?} names {token}, but {} us before it began {:?} was answered {:?}",
            call.answer,
            call.what,
            call.begin - report.at,
            report.call.what,
            report.call.answer
        ))
    });
    named.collect()
}

/// The highest token whose end an answer reports. A grant and a holder report the end of all tokens below theirs.
fn reported_end(call: &Call) -> Option<(&str, u64)> {
    let (resource, token) = match (&call.what, &call.answer) {
        (
            OperationKind::Renew(held) | OperationKind::Release(held) | OperationKind::Read(held),
            RecordedAnswer::Lost,
        )
        | (OperationKind::Release(held), RecordedAnswer::Released) => (&held.resource, held.token),
        (OperationKind::Look { resource }, RecordedAnswer::Holder { last, holder: None }) => {
            (resource, *last)
        }
        (OperationKind::Acquire { resource, .. }, RecordedAnswer::Granted { token, .. }) => {
            (resource, token - 1)
        }
        _ => {
            let (resource, token) = named_live(call)?;
            return Some((resource, token - 1)).filter(|it| it.1 > 0);
        }
    };
    Some((resource.as_str(), token)).filter(|it| it.1 > 0)
}

fn named_live(call: &Call) -> Option<(&str, u64)> {
    let (resource, token) = match (&call.what, &call.answer) {
        (OperationKind::Acquire { resource, .. }, RecordedAnswer::Refused { token, .. }) => {
            (resource, *token)
        }
        (
            OperationKind::Look { resource },
            RecordedAnswer::Holder {
                holder: Some((token, _)),
                ..
            },
        ) => (resource, *token),
        (OperationKind::Renew(held), RecordedAnswer::Renewed | RecordedAnswer::AtCap)
        | (OperationKind::Read(held), RecordedAnswer::Alive) => (&held.resource, held.token),
        _ => return None,
    };
    Some((resource.as_str(), token))
}
