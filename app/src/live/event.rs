//! Data of one event of the stream.

use domain::backend::BackendStatus;
use js_sys::{Array, JSON, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use super::topics::Revisions;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveEvent {
    pub revisions: Revisions,
    /// Changed rows since the previous event.
    pub changes: u32,
    pub held_total: u64,
    pub attention_total: u64,
    /// No server evaluates the alert rules.
    pub alerts_overdue: bool,
    /// Alert groups that fire.
    pub firing_groups: u32,
    pub is_read_only: bool,
    pub backends: Vec<LiveBackend>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveBackend {
    pub name: String,
    pub status: BackendStatus,
    /// `None`: never observed.
    pub age_ms: Option<i64>,
    pub poll_interval_ms: i64,
}

impl LiveEvent {
    /// Parses the JSON of an event with the browser's parser: the only JSON in the wasm, where
    /// a parser of its own would be a twentieth of the size.
    pub(super) fn read(json: &str) -> Option<Self> {
        let event = JSON::parse(json).ok()?;
        let backends: Array = get(&event, "backends")?.dyn_into().ok()?;
        Some(Self {
            revisions: Revisions {
                inventory: integer(&event, "revision")?.try_into().ok()?,
                alerts: total(&event, "alertsRevision"),
                activity: total(&event, "activityRevision"),
            },
            firing_groups: total(&event, "firingGroups").try_into().unwrap_or(u32::MAX),
            is_read_only: get(&event, "readOnly")?.as_bool().unwrap_or_default(),
            changes: u32::try_from(integer(&event, "changes")?).unwrap_or(u32::MAX),
            held_total: integer(&event, "heldTotal")?.try_into().ok()?,
            attention_total: integer(&event, "attentionTotal")?.try_into().ok()?,
            alerts_overdue: get(&event, "alertsOverdue")?.as_bool().unwrap_or_default(),
            backends: backends
                .iter()
                .map(|backend| LiveBackend::read(&backend))
                .collect::<Option<_>>()?,
        })
    }

    /// The backends `ms` later.
    pub fn backends_after(&self, ms: i64) -> Vec<LiveBackend> {
        let aged = |backend: &LiveBackend| LiveBackend {
            age_ms: backend.age_ms.map(|age| age + ms),
            ..backend.clone()
        };
        self.backends.iter().map(aged).collect()
    }
}

impl LiveBackend {
    fn read(backend: &JsValue) -> Option<Self> {
        Some(Self {
            name: get(backend, "name")?.as_string()?,
            status: BackendStatus::parse(&get(backend, "status")?.as_string()?)?,
            age_ms: integer(backend, "ageMs"),
            poll_interval_ms: integer(backend, "pollIntervalMs")?,
        })
    }
}

/// Of the backends that are not live, the one with the oldest data; one that never answered counts as oldest. A live backend
/// may be older than a stale one, because each has an interval of its own.
pub(super) fn oldest_not_live(backends: Vec<LiveBackend>) -> Option<LiveBackend> {
    let others = backends.into_iter();
    let others = others.filter(|backend| backend.status != BackendStatus::Live);
    others.max_by_key(|backend| backend.age_ms.unwrap_or(i64::MAX))
}

fn get(object: &JsValue, name: &str) -> Option<JsValue> {
    Reflect::get(object, &name.into()).ok()
}

/// A number of the event; 0 if the member is missing.
fn total(object: &JsValue, name: &str) -> u64 {
    integer(object, name).map_or(0, i64::unsigned_abs)
}

fn integer(object: &JsValue, name: &str) -> Option<i64> {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "numbers of JSON are exact up to 2^53"
    )]
    let integer = get(object, name)?.as_f64()? as i64;
    Some(integer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_ages_grow_and_unknown_ones_stay_unknown() {
        // Two backends, one never observed, half a second later.
        let backend = |age_ms| LiveBackend {
            name: "coord".to_owned(),
            status: BackendStatus::Stale,
            age_ms,
            poll_interval_ms: 2_000,
        };
        let event = LiveEvent {
            revisions: Revisions {
                inventory: 7,
                ..Revisions::default()
            },
            changes: 2,
            firing_groups: 3,
            is_read_only: false,
            held_total: 12_847,
            attention_total: 11,
            alerts_overdue: false,
            backends: vec![backend(Some(14_000)), backend(None)],
        };
        let ages: Vec<_> = event
            .backends_after(500)
            .into_iter()
            .map(|backend| backend.age_ms)
            .collect();
        assert_eq!(ages, [Some(14_500), None]);
    }

    #[test]
    fn a_live_backend_does_not_hide_a_stale_one() {
        // One that is read once a minute is older than one that should have been read 8 s ago.
        let backend = |name: &str, status, age_ms| LiveBackend {
            name: name.to_owned(),
            status,
            age_ms,
            poll_interval_ms: 2_000,
        };
        let live = || backend("slow", BackendStatus::Live, Some(45_000));
        let stale = || backend("coord", BackendStatus::Stale, Some(10_000));
        assert_eq!(oldest_not_live(vec![live(), stale()]), Some(stale()));
        assert_eq!(oldest_not_live(vec![live()]), None);
        let down = || backend("new", BackendStatus::Down, None);
        assert_eq!(oldest_not_live(vec![stale(), down()]), Some(down()));
    }
}
