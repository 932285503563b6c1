//! Alert rules scaled for the demo: states that take hours in production occur within two minutes.

use std::collections::BTreeMap;

use domain::alerts::Draft;
use domain::names::BackendName;

use super::names;

/// The id of the rule that fires on [`names::LONG_LOCK`].
pub(super) const LONG_HELD: &str = "demo_long_held";

/// About the lease service, which exists even if servers are missing.
pub(super) fn rules() -> Vec<Draft> {
    let with = [("times_p95", ""), ("longer_than", "60s"), ("at_least", "0s")];
    let with = with.map(|(name, value)| (name.to_owned(), value.to_owned()));
    vec![Draft {
        id: LONG_HELD.to_owned(),
        name: "Demo: held for a minute".to_owned(),
        condition: "long_held".to_owned(),
        backends: vec![BackendName::builtin().to_string()],
        prefix: names::LONG.to_owned(),
        for_: Some("0s".to_owned()),
        enabled: true,
        with: BTreeMap::from(with),
        ..Draft::default()
    }]
}
