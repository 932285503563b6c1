//! I3: every answer fits one order of events per resource, under the model "fenced mutex with expiry".
//!
//! The model of a resource is a chain: grant of token 1, its end, grant of token 2, its end, … An event happens at one
//! moment between the beginning of its call and its answer (Herlihy and Wing, "Linearizability", 1990). Tokens name the
//! order of grants, so no order has to be searched for; what is left is whether moments exist. Every answer bounds them:
//!
//! - a grant lies within its call; a lost one, which only the store knows, not before its call began;
//! - `released: true` is the end of its lease and lies within its call;
//! - an end by time lies at or after the beginning of the last call that renewed it (or granted it), plus the TTL:
//!   the store counts from when it runs the call, which is later than when we sent it; or at the cap of its life;
//! - renewed, read alive, or refused because of token n: at some moment of that call, n was live: n's grant is not after
//!   the call's end, and n's end not before the call's beginning;
//! - a rejected caller's lease, if it had one, was released or expired before the response;
//! - a lost lease: its end is not after the answer; a read of a free resource: likewise, and before the next grant.
//!
//! The events of one lease between its grant and its end change nothing that another of them sees, so they need no order
//! among themselves, and a chain of windows has moments if and only if taking the earliest possible one each time never
//! passes a window's end. The check is therefore exact for this model, and linear; unknown outcomes only widen
//! windows, so what it reports is a violation.

use std::collections::{BTreeMap, HashMap};

use super::super::history::{Call, History, Micros, OperationKind, RecordedAnswer};

/// Milliseconds of the store against microseconds of ours: the store rounds down, and its clock may be steered a little.
const GRAIN: Micros = 10_000;

/// Window of an event's time: not before, not after.
#[derive(Debug, Clone, Copy)]
struct Window {
    from: Micros,
    to: Micros,
}

impl Window {
    const ANY: Self = Self {
        from: i64::MIN,
        to: i64::MAX,
    };

    fn not_before(&mut self, at: Micros) {
        self.from = self.from.max(at);
    }

    fn not_after(&mut self, at: Micros) {
        self.to = self.to.min(at);
    }
}

#[derive(Debug, Clone, Copy)]
struct Link {
    grant: Window,
    end: Window,
    released: bool,
    /// The latest moment from which the TTL is known to have counted.
    counted_from: Micros,
    ttl: Micros,
}

type Chains<'a> = HashMap<&'a str, BTreeMap<u64, Link>>;

pub(super) fn check(history: &History) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut chains = Chains::new();
    grants(history, &mut chains);
    for call in &history.calls {
        match &call.answer {
            RecordedAnswer::Unexpected(text) => found.push(format!(
                "client {}: {:?} was answered {text}",
                call.client, call.what
            )),
            _ => found.extend(bound(call, &mut chains)),
        }
    }
    for (resource, chain) in &chains {
        found.extend(walk(resource, chain, history));
    }
    found
}

/// Links from answers, and for lost answers from the store's rows, which its owner's one call names.
fn grants<'a>(history: &'a History, chains: &mut Chains<'a>) {
    let calls: HashMap<&str, &Call> = history
        .calls
        .iter()
        .filter_map(|call| match &call.what {
            OperationKind::Acquire { owner, .. } => Some((owner.as_str(), call)),
            _ => None,
        })
        .collect();
    for row in &history.rows {
        let call = calls.get(row.owner.as_str());
        let begin = call.map_or(i64::MIN, |call| call.begin);
        let mut end = Window::ANY;
        let is_refused = |call: &&&Call| {
            matches!(
                call.answer,
                RecordedAnswer::Refused { .. } | RecordedAnswer::RefusedForWaiters(_)
            )
        };
        if let Some(call) = call.filter(is_refused) {
            end.not_after(call.end.unwrap_or(i64::MAX));
        }
        let link = Link {
            grant: Window {
                from: begin,
                to: i64::MAX,
            },
            end,
            released: row.ended.as_ref().is_some_and(|(_, how)| how != "expired"),
            counted_from: begin,
            ttl: row.ttl_ms * 1_000,
        };
        chains.entry(&row.resource).or_default().insert(row.token, link);
    }
    for grant in super::grants(history) {
        let chain = chains.entry(grant.resource).or_default();
        let link = chain.entry(grant.token).or_insert(Link {
            grant: Window::ANY,
            end: Window::ANY,
            released: false,
            counted_from: grant.call.begin,
            ttl: grant.ttl_ms * 1_000,
        });
        link.grant.not_before(grant.call.begin);
        link.grant.not_after(grant.call.end.unwrap_or(i64::MAX));
    }
}

/// The bounds that one answer sets on the windows. Answers about tokens never granted are violations of their own.
fn bound<'a>(call: &'a Call, chains: &mut Chains<'a>) -> Option<String> {
    let end = call.end?;
    let (resource, token, seen) = match (&call.what, &call.answer) {
        (OperationKind::Renew(held), RecordedAnswer::Renewed) => (&held.resource, held.token, Seen::Renewed),
        (OperationKind::Renew(held), RecordedAnswer::AtCap)
        | (OperationKind::Read(held), RecordedAnswer::Alive) => (&held.resource, held.token, Seen::Live),
        (OperationKind::Release(held), RecordedAnswer::Released) => {
            (&held.resource, held.token, Seen::Released)
        }
        (
            OperationKind::Renew(held) | OperationKind::Release(held) | OperationKind::Read(held),
            RecordedAnswer::Lost,
        ) => (&held.resource, held.token, Seen::Ended),
        (OperationKind::Acquire { resource, .. }, RecordedAnswer::Refused { token, .. }) => {
            (resource, *token, Seen::Live)
        }
        (
            OperationKind::Look { resource },
            RecordedAnswer::Holder {
                holder: Some((token, _)),
                ..
            },
        ) => (resource, *token, Seen::Live),
        (OperationKind::Look { resource }, RecordedAnswer::Holder { last, holder: None }) if *last > 0 => {
            (resource, *last, Seen::Ended)
        }
        _ => return None,
    };
    if token == 0 {
        return None;
    }
    let chain = chains.entry(resource).or_default();
    let Some(link) = chain.get_mut(&token) else {
        return Some(format!(
            "{resource}: an answer names token {token}, which was never granted"
        ));
    };
    link.grant.not_after(end);
    match seen {
        Seen::Live => link.end.not_before(call.begin),
        Seen::Renewed => {
            link.end.not_before(call.begin);
            link.counted_from = link.counted_from.max(call.begin);
        }
        Seen::Released => {
            link.end.not_before(call.begin);
            link.end.not_after(end);
            link.released = true;
        }
        Seen::Ended => link.end.not_after(end),
    }
    // Answers that report this lease as the last, requested before or while the next was granted.
    if matches!((&call.what, seen), (OperationKind::Look { .. }, Seen::Ended)) {
        let next = chain.range_mut(token + 1..).next();
        if let Some((_, next)) = next {
            next.grant.not_before(call.begin);
        }
    }
    None
}

#[derive(Debug, Clone, Copy)]
enum Seen {
    Live,
    Renewed,
    Released,
    Ended,
}

/// Assigns the earliest possible time to each event in turn.
fn walk(resource: &str, chain: &BTreeMap<u64, Link>, history: &History) -> Vec<String> {
    let mut found = Vec::new();
    let mut now = i64::MIN;
    for (token, link) in chain {
        let mut end = link.end;
        if !link.released && !history.clock_moved && link.counted_from > i64::MIN {
            let cap = link.grant.from.saturating_add(history.lifetime_ms_max * 1_000);
            end.not_before(cap.min(link.counted_from + link.ttl) - GRAIN);
        }
        for (what, window) in [("grant", link.grant), ("end", end)] {
            now = now.max(window.from);
            if now > window.to {
                found.push(format!(
                    "{resource}: the {what} of {token} has to be {} us later than its answers allow: {link:?}",
                    now - window.to
                ));
                now = window.to;
            }
        }
    }
    found
}
