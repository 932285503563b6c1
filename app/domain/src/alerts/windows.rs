//! Conditions on what happened to a prefix in a window.

use super::kind::Kind;
use super::locks::share;
use super::past::{Entry, Past, Window, quantile};
use super::pattern::Pattern;
use super::round::{Found, Subject};
use super::rule::{Condition, Rule};
use crate::human;
use crate::names::BackendName;

/// What one window says: the measure, and whether it is too much with the sentence that says so.
pub(super) struct Seen {
    pub(super) measure: i64,
    pub(super) why: Option<String>,
}

/// Every prefix for which the rule's condition holds now.
pub fn judge_windows(index: usize, rule: &Rule, past: &Past, now: i64) -> Vec<Found> {
    let mut found = Vec::new();
    for (key, window) in past.windows() {
        let (backend, prefix) = key;
        if !rule.scope.has_backend(backend) {
            continue;
        }
        let seen = window.judge(rule, past, key, now);
        if let Some(why) = seen.why {
            found.push(Found {
                rule: index,
                subject: Subject::Prefix {
                    backend: backend.clone(),
                    prefix: prefix.clone(),
                },
                owner: None,
                holding: String::new(),
                measure: seen.measure,
                why,
            });
        }
    }
    found
}

/// The most that any prefix measures now, for the series.
pub(super) fn highest(rule: &Rule, past: &Past, now: i64) -> i64 {
    let windows = past
        .windows()
        .filter(|((backend, _), _)| rule.scope.has_backend(backend));
    let measures = windows.map(|(key, window)| window.judge(rule, past, key, now).measure);
    measures.max().unwrap_or(0)
}

impl Window {
    /// Of names that the pattern covers.
    fn judge(&self, rule: &Rule, past: &Past, key: &(BackendName, String), now: i64) -> Seen {
        let (condition, of) = (&rule.condition, &rule.scope.prefix);
        let window_ms = condition.value("window").unwrap_or(300_000);
        let since = now - window_ms;
        let recent = || {
            let newest_first = self.entries.iter().rev();
            newest_first
                .take_while(move |(at, ..)| *at > since)
                .filter(|(.., name)| of.covers(name.as_bytes()))
                .map(|(_, entry, _)| *entry)
        };
        let within = human::period(window_ms);
        match condition.kind {
            Kind::Contention => {
                let count = |wanted: Entry| recent().filter(|entry| *entry == wanted).count() as i64;
                // Of refusals the template is known, and no name: a rule on one tenant of many counts none.
                let refused = if of.covers(key.1.as_bytes()) {
                    past.refused_in(key, since, now)
                } else {
                    0
                };
                let contended = count(Entry::Contended);
                contention(
                    condition,
                    (count(Entry::Acquired).max(contended), contended, refused),
                    &within,
                )
            }
            Kind::WaitP95 => {
                let waits = recent().filter_map(|entry| match entry {
                    Entry::Waited(ms) => Some(ms),
                    _ => None,
                });
                let mut waits: Vec<i64> = waits.collect();
                let measure = enough(condition, waits.len()).map_or(0, |()| quantile(&mut waits, 95));
                let is_above = measure > condition.value("longer_than").unwrap_or(i64::MAX);
                let count = waits.len();
                let why = || {
                    format!(
                        "The p95 of {count} waits in {within} is {}.",
                        human::duration(measure)
                    )
                };
                Seen {
                    measure,
                    why: is_above.then(why),
                }
            }
            Kind::HoldNearTtl => self.holds(condition, of, since, &within),
            Kind::LeaseLosses => {
                let lost = recent().filter(|entry| *entry == Entry::Lost).count() as i64;
                let is_above = lost >= condition.value("count").unwrap_or(i64::MAX);
                let why = || {
                    let lost = human::counted(lost.unsigned_abs(), "lease", "leases");
                    format!("{lost} ran out in {within} while held.")
                };
                Seen {
                    measure: lost,
                    why: is_above.then(why),
                }
            }
            _ => Seen {
                measure: 0,
                why: None,
            },
        }
    }

    /// Only holds without a renewal: a holder that renews may work for longer than its TTL.
    fn holds(&self, condition: &Condition, of: &Pattern, since: i64, within: &str) -> Seen {
        let recent = self.entries.iter().rev().take_while(|(at, ..)| *at > since);
        let shares = recent.filter_map(|(_, entry, name)| match entry {
            Entry::Held { ms, ttl_ms } if of.covers(name.as_bytes()) => Some((share(*ms, *ttl_ms), *ttl_ms)),
            _ => None,
        });
        let shares: Vec<(i64, i64)> = shares.collect();
        let ttl_ms = shares.first().map_or(0, |(_, ttl_ms)| *ttl_ms);
        let mut parts: Vec<i64> = shares.iter().map(|(part, _)| *part).collect();
        let measure = enough(condition, parts.len()).map_or(0, |()| quantile(&mut parts, 99));
        let is_above = measure > condition.value("share").unwrap_or(i64::MAX);
        let why = || {
            format!(
                "The p99 of {} holds in {within} is {} % of the TTL of {}: the work takes as long as its lease.",
                parts.len(),
                measure / 10,
                human::period(ttl_ms)
            )
        };
        Seen {
            measure,
            why: is_above.then(why),
        }
    }
}

/// Holdings, those of them that were waited for, and who was refused.
fn contention(condition: &Condition, (holdings, contended, refused): (i64, i64, i64), within: &str) -> Seen {
    let asked = holdings.saturating_add(refused);
    let measure = share(contended.saturating_add(refused), asked);
    let is_enough = asked >= condition.value("at_least").unwrap_or(1);
    let is_above = is_enough && measure > condition.value("share").unwrap_or(i64::MAX);
    let per_cent = measure / 10;
    let why = || match refused {
        0 => format!("{per_cent} % of {holdings} holdings in {within} were waited for."),
        _ => format!("{per_cent} % of {asked} attempts in {within} waited or were refused."),
    };
    Seen {
        measure: if is_enough { measure } else { 0 },
        why: is_above.then(why),
    }
}

fn enough(condition: &Condition, count: usize) -> Option<()> {
    let wanted = condition.value("at_least").unwrap_or(1);
    (i64::try_from(count).unwrap_or(i64::MAX) >= wanted).then_some(())
}
