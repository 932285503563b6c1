//! Rules as TOML, for review in a code repository.

use domain::alerts::Draft;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Draft>,
}

/// One `[[rule]]` table per rule.
pub fn toml(rules: impl Iterator<Item = Draft>) -> String {
    let file = File {
        rule: rules.collect(),
    };
    toml::to_string(&file).unwrap_or_default()
}

/// # Errors
/// The parser's message, with the line.
pub fn from_toml(text: &str) -> Result<Vec<Draft>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(file.rule)
}
