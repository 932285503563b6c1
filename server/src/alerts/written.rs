//! Rules as TOML, for review beside the code they watch over.

use domain::alerts::Draft;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rule: Vec<Draft>,
}

/// `[[rule]]` after `[[rule]]`.
pub fn toml(rules: impl Iterator<Item = Draft>) -> String {
    let file = File {
        rule: rules.collect(),
    };
    toml::to_string(&file).unwrap_or_default()
}

/// # Errors
/// What the reader says, with the line.
pub fn from_toml(text: &str) -> Result<Vec<Draft>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    Ok(file.rule)
}
