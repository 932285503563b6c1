//! The data of one event of the stream.

use domain::backend::BackendStatus;
use serde::Deserialize;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pulse {
    pub revision: u64,
    /// Row changes since the event before.
    pub changes: u32,
    pub held_total: u64,
    pub attention_total: u64,
    pub backends: Vec<BackendPulse>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackendPulse {
    pub name: String,
    pub status: BackendStatus,
    /// None: never observed.
    pub age_ms: Option<i64>,
    pub poll_ms: i64,
}

impl Pulse {
    /// The backends `ms` later.
    pub fn grown(&self, ms: i64) -> Vec<BackendPulse> {
        let grow = |backend: &BackendPulse| BackendPulse {
            age_ms: backend.age_ms.map(|age| age + ms),
            ..backend.clone()
        };
        self.backends.iter().map(grow).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reads_as_the_contract_writes_it() {
        // The very JSON of the contract; ages grow by the browser's own clock.
        let json = r#"{"revision":7,"changes":2,"heldTotal":12847,"attentionTotal":11,
            "backends":[{"name":"coord","status":"stale","ageMs":14000,"pollMs":2000},
                        {"name":"cache","status":"down","ageMs":null,"pollMs":2000}]}"#;
        let pulse: Pulse = serde_json::from_str(json).unwrap();
        let ages: Vec<_> = pulse
            .grown(500)
            .into_iter()
            .map(|backend| backend.age_ms)
            .collect();
        assert_eq!(ages, [Some(14_500), None]);
    }
}
