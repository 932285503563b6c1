//! Texts of an expiry bar: the number at its right, and the sentence for screen readers and the
//! tooltip.

use super::{Form, form, left_ms, track_ms};
use crate::format;
use crate::lock::Lock;

/// `27.0 s`, `≤ 7.0 s`, `no TTL`, `no lease`, `unknown`, `−6 m 12 s`.
pub fn label(lock: &Lock, elapsed_ms: i64) -> String {
    match form(lock) {
        Form::Leased if lock.is_stale() => {
            format!("\u{2264} {}", format::duration(left_ms(lock, elapsed_ms)))
        }
        Form::Leased | Form::Expired => format::duration(left_ms(lock, elapsed_ms)),
        Form::NoTtl => "no TTL".to_owned(),
        Form::Session => "no lease".to_owned(),
        Form::Unknown => "unknown".to_owned(),
    }
}

/// One or two sentences that describe the drawing.
pub fn title(lock: &Lock) -> String {
    let left = format::duration(left_ms(lock, 0));
    let track = format::period(track_ms(lock));
    match form(lock) {
        Form::Leased if lock.is_stale() && left_ms(lock, 0) == 0 => {
            format!(
                "Not observed for {}: the lease has expired since its last reading.",
                format::duration(lock.age_ms)
            )
        }
        Form::Leased if lock.is_stale() => {
            format!(
                "Not seen for {}: at most {left} of {track} left.",
                format::duration(lock.age_ms)
            )
        }
        Form::Leased => join(format!("{left} of {track} left."), &details(lock)),
        Form::Expired => {
            let ago = format::duration(left_ms(lock, 0).saturating_neg());
            let is_there = lock.age_ms.saturating_add(left_ms(lock, 0)) <= 0;
            let record = if is_there {
                " and the record is still there"
            } else {
                ", after the last scan"
            };
            join(format!("The lease ran out {ago} ago{record}."), &details(lock))
        }
        Form::NoTtl => format!("No TTL: {}.", missing_reason(lock, "it never expires by itself")),
        Form::Session => "Held until its session ends: there is no lease.".to_owned(),
        Form::Unknown if lock.remaining_ms.known().is_some() => {
            "The lease ran out after the last scan, unless the holder renewed it since.".to_owned()
        }
        Form::Unknown => format!(
            "Time left unknown: {}.",
            missing_reason(lock, "not reported by this backend")
        ),
    }
}

/// Time left at past renewals: `Renewals came with 19.4 s to 20.6 s left`. `None` before the
/// first.
pub fn marks_sentence(lock: &Lock) -> Option<String> {
    let lowest = lock.low_marks_ms.iter().min()?;
    let highest = lock.low_marks_ms.iter().max()?;
    let (from, to) = (format::duration(*lowest), format::duration(*highest));
    let range = if from == to {
        from
    } else {
        format!("{from} to {to}")
    };
    Some(if lock.low_marks_ms.len() == 1 {
        format!("One renewal came with {range} left")
    } else {
        format!("Renewals came with {range} left")
    })
}

fn details(lock: &Lock) -> String {
    let marks = marks_sentence(lock).map(|sentence| format!("{sentence}."));
    let notch = lock
        .notch_ms
        .filter(|ms| *ms > 0)
        .map(|ms| format!("Near expiry below {}.", format::duration(ms)));
    marks.into_iter().chain(notch).collect::<Vec<_>>().join(" ")
}

fn join(first: String, rest: &str) -> String {
    if rest.is_empty() {
        first
    } else {
        format!("{first} {rest}")
    }
}

fn missing_reason<'a>(lock: &'a Lock, otherwise: &'a str) -> &'a str {
    lock.remaining_ms
        .why()
        .filter(|why| !why.is_empty())
        .unwrap_or(otherwise)
        .trim_end_matches('.')
}
