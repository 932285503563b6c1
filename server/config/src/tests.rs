//! Tests of the loader as a whole: layers, errors, and documentation.

mod access;
mod coordinators;
mod docs;
mod identity;
mod layers;
mod lease_store;
mod lease_tables;
mod mistakes;
mod redis_topology;

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Config, ConfigErrors, ConfigSources, FileSource, FlagSource, Loaded, read};

/// Sources of a test: file, variables, flags.
fn sources(file: &str, variables: &[(&str, &str)]) -> ConfigSources {
    ConfigSources {
        file: Some(FileSource {
            path: PathBuf::from("leasehold.toml"),
            text: file.to_owned(),
        }),
        environment: variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect::<BTreeMap<_, _>>(),
        flags: Vec::new(),
    }
}

fn load(file: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    Config::load(&sources(file, variables))
}

fn load_report(file: &str, variables: &[(&str, &str)]) -> Loaded {
    read(&sources(file, variables))
}

fn listen_flag(value: &str) -> FlagSource {
    FlagSource {
        key: "listen",
        name: "--listen",
        value: value.to_owned(),
    }
}
